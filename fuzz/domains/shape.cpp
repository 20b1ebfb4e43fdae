// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/shape.h"

#include <algorithm>

namespace lossgate::fuzz {
namespace {

constexpr Share<int> kSequences[] = {
    {1, {2, 2, 2}}, {2, {4, 3, 2}},  {3, {3, 4, 2}},  {4, {4, 3, 2}},  {5, {0, 3, 2}},
    {8, {0, 3, 2}}, {13, {0, 0, 2}}, {33, {0, 0, 1}}, {65, {0, 0, 1}},
};

constexpr Share<int> kTokens[] = {
    {1, {1, 2, 2}},  {2, {1, 3, 2}},  {3, {2, 2, 2}},   {4, {4, 1, 1}},   {5, {2, 2, 1}},
    {8, {4, 2, 1}},  {13, {2, 2, 1}}, {16, {3, 1, 1}},  {17, {0, 2, 1}},  {32, {1, 1, 1}},
    {33, {0, 1, 2}}, {65, {0, 0, 2}}, {127, {0, 0, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

/// Where a position is a few numbers, no row of them: a case of many asks more, at no great cost.
constexpr Share<int> kTokensAlone[] = {
    {1, {1, 1, 1}},  {2, {1, 0, 1}},  {3, {2, 1, 1}},   {4, {4, 0, 1}},   {5, {2, 0, 1}},
    {8, {4, 0, 1}},  {13, {2, 1, 1}}, {16, {3, 1, 1}},  {17, {0, 3, 2}},  {32, {1, 2, 2}},
    {33, {0, 4, 3}}, {65, {0, 2, 3}}, {127, {0, 0, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

constexpr Share<int> kVocab[] = {
    {2, {1, 3, 1}},    {3, {1, 3, 1}},    {5, {2, 1, 1}},     {16, {3, 1, 1}},  {17, {1, 3, 1}},
    {32, {2, 1, 1}},   {33, {1, 2, 1}},   {100, {1, 1, 1}},   {257, {0, 1, 2}}, {1000, {0, 1, 2}},
    {1024, {0, 0, 1}}, {4099, {0, 1, 2}}, {32771, {0, 0, 1}},
};

/// Whether the loss has rows of numbers at its positions.
bool has_rows(const LossSignature& signature) {
  return std::ranges::any_of(signature.fields, [](const Field& field) {
    return std::ranges::any_of(field.axes, [](Axis axis) {
      return axis == Axis::vocab || axis == Axis::hidden || axis == Axis::support;
    });
  });
}

std::int64_t draw_extent(Axis axis, bool rows, Temper temper, Choices& choices) {
  switch (axis) {
    case Axis::sequences:
      return pick(kSequences, temper, choices);
    case Axis::tokens:
      return rows ? pick(kTokens, temper, choices) : pick(kTokensAlone, temper, choices);
    case Axis::vocab:
      return pick(kVocab, temper, choices);
    case Axis::hidden:
      return choices.integer(1, temper == Temper::extreme ? 65 : 9);
    case Axis::support:
      return choices.integer(1, temper == Temper::extreme ? 9 : 4);
    case Axis::responses:
      return choices.integer(1, 4);
    case Axis::bytes:
      return 1;  // a message is as long as what it says
  }
  return 1;
}

}  // namespace

std::int64_t work(const Shape& shape) {
  std::int64_t product = 1;
  for (Axis axis : kAllAxes) product *= std::max<std::int64_t>(shape[axis], 1);
  return product;
}

Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices) {
  Shape shape;
  const bool rows = has_rows(signature);
  const auto extend = [&](const std::vector<Axis>& axes) {
    for (Axis axis : axes) {
      if (shape[axis] >= 0) continue;
      const auto pinned = signature.pinned_extent(axis);
      shape[axis] = pinned ? *pinned : draw_extent(axis, rows, temper, choices);
    }
  };
  for (const Field& field : signature.fields) extend(field.axes);
  for (const OutputField& output : signature.outputs) extend(output.axes);

  // The vocabulary gives way last: its odd sizes are the interesting ones.
  // One large case takes the time of a hundred small ones, and few faults need it.
  const bool large = temper == Temper::extreme && choices.integer(0, 15) == 0;
  std::int64_t budget = large ? 1 << 16 : 1 << 13;
  // What cannot give way leaves room for a few tokens of a few sequences.
  std::int64_t pinned = 8;
  for (const auto& [axis, extent] : signature.pinned) pinned *= extent;
  budget = std::max(budget, pinned);
  for (Axis axis : {Axis::tokens, Axis::sequences, Axis::hidden, Axis::vocab}) {
    const std::int64_t least = axis == Axis::vocab ? 2 : 1;
    while (!signature.pinned_extent(axis) && shape[axis] > least && work(shape) > budget) {
      shape[axis] = std::max(least, shape[axis] / 2);
    }
  }
  return shape;
}

}  // namespace lossgate::fuzz
