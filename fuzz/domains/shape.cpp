// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/shape.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

#include "reference/spec/lists.h"

namespace lossgate::fuzz {
namespace {

constexpr Share<int> kSequences[] = {
    {1, {2, 2, 2}}, {2, {4, 2, 2}},  {3, {3, 3, 2}},  {4, {4, 3, 2}},  {5, {0, 3, 2}},
    {8, {0, 4, 2}}, {13, {0, 3, 2}}, {33, {0, 0, 1}}, {65, {0, 0, 1}},
};

constexpr Share<int> kTokens[] = {
    {1, {1, 1, 2}},  {2, {1, 2, 2}},   {3, {2, 2, 2}},   {4, {4, 1, 1}},
    {5, {2, 2, 1}},  {8, {4, 2, 1}},   {13, {2, 2, 1}},  {16, {3, 1, 1}},
    {17, {0, 2, 1}}, {32, {1, 1, 1}},  {33, {0, 1, 2}},  {64, {0, 1, 1}},
    {65, {0, 0, 2}}, {127, {0, 1, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

/// Where a position is a few numbers, no row of them: a case of many asks more, at no great cost.
constexpr Share<int> kTokensAlone[] = {
    {1, {1, 1, 1}},  {2, {1, 0, 1}},   {3, {2, 1, 1}},   {4, {4, 0, 1}},
    {5, {2, 0, 1}},  {8, {4, 0, 1}},   {13, {2, 1, 1}},  {16, {3, 1, 1}},
    {17, {0, 3, 2}}, {32, {1, 2, 2}},  {33, {0, 4, 3}},  {64, {0, 1, 1}},
    {65, {0, 1, 3}}, {127, {0, 1, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

constexpr Share<int> kVocab[] = {
    {2, {1, 3, 1}},    {3, {1, 3, 1}},    {5, {2, 1, 1}},    {16, {3, 1, 1}},    {17, {1, 3, 1}},
    {32, {2, 1, 1}},   {33, {1, 1, 1}},   {64, {0, 1, 1}},   {100, {1, 1, 1}},   {257, {0, 1, 2}},
    {1000, {0, 1, 2}}, {1024, {0, 0, 1}}, {4099, {0, 1, 2}}, {32771, {0, 0, 1}},
};

/// A row of a matrix is a few numbers mostly, or a block of a kernel and what lies beside it.
constexpr Share<int> kHidden[] = {
    {1, {1, 1, 1}},  {2, {1, 1, 1}},  {3, {1, 2, 1}},  {4, {1, 1, 1}},
    {5, {1, 2, 1}},  {7, {1, 1, 1}},  {8, {1, 1, 1}},  {9, {1, 1, 1}},
    {16, {0, 1, 1}}, {33, {0, 1, 1}}, {65, {0, 1, 1}}, {128, {0, 0, 1}},
};

constexpr Share<int> kSupport[] = {
    {1, {1, 1, 1}}, {2, {1, 2, 1}}, {3, {1, 2, 1}}, {4, {1, 2, 1}},
    {5, {0, 1, 1}}, {8, {0, 1, 1}}, {9, {0, 1, 1}},
};

/// Whether the loss has rows of numbers at its positions.
bool is_wide(const LossSignature& signature) {
  return signature.has_axis(Axis::vocab) || signature.has_axis(Axis::hidden) ||
         signature.has_axis(Axis::support);
}

/// Whether each sequence is a position of a number or two, as a pair of answers is, or an answer's
/// reward.
bool has_positions_alone(const LossSignature& signature) {
  const auto is_number = [](const Field& field) { return field.dtypes.empty(); };
  return !signature.has_axis(Axis::tokens) && !signature.has_axis(Axis::bytes) &&
         std::ranges::any_of(signature.fields, is_number);
}

/// Of one sequence that might have been more.
bool is_single(const LossSignature& signature, const Shape& drawn) {
  return drawn[Axis::sequences] == 1 && !signature.pinned_extent(Axis::sequences) &&
         signature.longest_extent(Axis::sequences).value_or(2) > 1;
}

std::int64_t draw_extent(Axis axis, bool single, bool wide, bool alone, Temper temper,
                         Choices& choices) {
  switch (axis) {
    case Axis::sequences:
      return alone ? pick(kTokensAlone, temper, choices) : pick(kSequences, temper, choices);
    case Axis::tokens:
      // One position in all is where code squeezes, and where nothing is beside it; two in one
      // sequence are where means over tokens, sequences and batches part.
      if (single && temper != Temper::plain && choices.sometimes(0.5)) return choices.integer(1, 2);
      return wide ? pick(kTokens, temper, choices) : pick(kTokensAlone, temper, choices);
    case Axis::vocab:
      return pick(kVocab, temper, choices);
    case Axis::hidden:
      return pick(kHidden, temper, choices);
    case Axis::support:
      return pick(kSupport, temper, choices);
    case Axis::responses:
      // From ten on the order of numbers is not that of their names.
      return temper != Temper::plain && choices.sometimes(0.1) ? choices.integer(10, 12)
                                                               : choices.integer(1, 4);
    case Axis::bytes:
      return 1;  // a message is as long as what it says
  }
  return 1;
}

/// Numbers of a field: two rows of the widest vocabulary of a nasty case; of a large case.
constexpr std::int64_t kBudget = std::int64_t{2} * 4099, kLargeBudget = 1 << 16;

}  // namespace

void for_each_axis(const LossSignature& signature, const std::function<void(Axis)>& extend) {
  for (const Field& field : signature.fields) std::ranges::for_each(field.axes, extend);
  for (const OutputField& output : signature.outputs) std::ranges::for_each(output.axes, extend);
}

std::int64_t work(const Shape& shape) {
  std::int64_t product = 1;
  for (Axis axis : kAllAxes) product *= std::max<std::int64_t>(shape[axis], 1);
  return product;
}

std::int64_t pinned_work(const LossSignature& signature) {
  std::int64_t product = 1;
  for (const auto& [axis, extent] : signature.pinned) product *= std::max<std::int64_t>(extent, 1);
  return product;
}

std::int64_t most_drawn(const LossSignature& signature, Axis axis) {
  switch (axis) {
    case Axis::sequences:
      return has_positions_alone(signature) ? std::end(kTokensAlone)[-1].kind
                                            : std::end(kSequences)[-1].kind;
    case Axis::tokens:
      return std::end(kTokens)[-1].kind;
    case Axis::vocab:
      return std::end(kVocab)[-1].kind;
    case Axis::hidden:
      return std::end(kHidden)[-1].kind;
    case Axis::support:
      return std::end(kSupport)[-1].kind;
    default:
      return 1;
  }
}

Shape draw_extents(const LossSignature& signature, Temper temper, Choices& choices) {
  Shape shape;
  const bool wide = is_wide(signature), alone = has_positions_alone(signature);
  for_each_axis(signature, [&](Axis axis) {
    if (shape[axis] >= 0) return;
    const auto pinned = signature.pinned_extent(axis);
    const bool single = is_single(signature, shape);
    shape[axis] = pinned ? *pinned : draw_extent(axis, single, wide, alone, temper, choices);
    const auto most = signature.longest_extent(axis);
    if (most && !pinned) shape[axis] = std::min(shape[axis], *most);
    if (!pinned) shape[axis] = std::max(shape[axis], signature.least_extent(axis));
  });
  return shape;
}

void give_way(const LossSignature& signature, std::int64_t budget, std::span<const Axis> order,
              Shape& shape, std::int64_t least_sequences, std::int64_t least_tokens) {
  for (Axis axis : order) {
    if (signature.pinned_extent(axis)) continue;
    const std::int64_t asked = axis == Axis::sequences ? least_sequences
                               : axis == Axis::tokens  ? least_tokens
                                                       : 1;
    const std::int64_t least = std::max(asked, signature.least_extent(axis));
    while (shape[axis] > least && work(shape) > budget) {
      shape[axis] = std::max(least, shape[axis] / 2);
    }
  }
}

void leave_room_for_lists(const LossSignature& signature, Shape& shape) {
  if (!has_room_for_lists(signature, shape)) shape[Axis::support] = shape[Axis::vocab];
}

Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices) {
  Shape shape = draw_extents(signature, temper, choices);
  // One large case takes the time of a hundred small ones, and few faults need it.
  const bool large = temper == Temper::extreme && choices.integer(0, 15) == 0;
  // What cannot give way leaves room for a few tokens of a few sequences.
  const std::int64_t budget = std::max(large ? kLargeBudget : kBudget, 8 * pinned_work(signature));
  // The vocabulary gives way last: its odd sizes are the interesting ones. A single position shows
  // little beside, so two sequences of two tokens stay as long as anything else gives way.
  constexpr Axis kFirst[] = {Axis::tokens, Axis::sequences, Axis::hidden};
  constexpr Axis kThen[] = {Axis::tokens, Axis::sequences, Axis::vocab};
  give_way(signature, budget, kFirst, shape, 2, 2);
  give_way(signature, budget, kThen, shape);
  leave_room_for_lists(signature, shape);
  return shape;
}

}  // namespace lossgate::fuzz
