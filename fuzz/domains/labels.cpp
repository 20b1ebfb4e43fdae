// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/labels.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lossgate::fuzz {
namespace {

enum class Place { anywhere, peak, lowest, first, last };

constexpr Share<Place> kPlaces[] = {
    {Place::anywhere, {6, 3, 3}}, {Place::peak, {2, 2, 2}}, {Place::lowest, {0, 1, 2}},
    {Place::first, {0, 1, 1}},    {Place::last, {1, 2, 2}},
};

/// The token of the largest logit, or of the smallest one; the first of equals.
std::int64_t extreme_token(const Tensor& logits, std::int64_t begin, std::int64_t vocab,
                           bool peak) {
  std::int64_t best = 0;
  for (std::int64_t token = 1; token < vocab; ++token) {
    const double value = logits.at(begin + token);
    const double leader = logits.at(begin + best);
    if (peak ? value > leader : value < leader) best = token;
  }
  return best;
}

std::int64_t draw_label(Place place, std::int64_t vocab, const Tensor* logits, std::int64_t row,
                        bool impossible_allowed, Choices& choices) {
  std::int64_t label = choices.integer(0, vocab - 1);
  if (place == Place::first) label = 0;
  if (place == Place::last) label = vocab - 1;
  if (!logits) return label;
  const std::int64_t begin = row * vocab;
  if (place == Place::peak || place == Place::lowest) {
    label = extreme_token(*logits, begin, vocab, place == Place::peak);
  }
  const bool impossible = logits->at(begin + label) == -std::numeric_limits<double>::infinity();
  if (impossible && !impossible_allowed) return extreme_token(*logits, begin, vocab, true);
  return label;
}

/// How far apart the tokens of a row's support lie: any number that reaches all of them.
std::int64_t draw_stride(std::int64_t vocab, Temper temper, Choices& choices) {
  if (temper == Temper::plain || vocab < 3) return 1;
  std::int64_t stride = choices.integer(1, vocab - 1);
  while (std::gcd(stride, vocab) != 1) --stride;
  return stride;
}

}  // namespace

void draw_labels(const Column& column, std::int64_t vocab, const Tensor* logits, Temper temper,
                 Choices& choices) {
  Tensor& tensor = *column.tensor;
  const bool on_support = !column.field->axes.empty() && column.field->axes.back() == Axis::support;
  const std::int64_t count = on_support ? tensor.extents.back() : 1;
  const bool impossible_allowed = temper != Temper::plain && choices.sometimes(0.05);
  const Tensor* rows = logits && logits->size() == tensor.size() * vocab ? logits : nullptr;
  const Place common = pick(kPlaces, temper, choices);
  const bool mixed = choices.sometimes(0.5);
  std::int64_t stride = 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const Place place = mixed ? pick(kPlaces, temper, choices) : common;
    std::int64_t label = draw_label(place, vocab, rows, i, impossible_allowed, choices);
    if (const std::int64_t slot = i % count; slot != 0) {
      if (slot == 1) stride = draw_stride(vocab, temper, choices);
      const std::int64_t row = i - slot;
      label = choices.sometimes(0.1) ? tensor.integer_at(row + choices.integer(0, slot - 1))
                                     : (tensor.integer_at(row) + slot * stride) % vocab;
    }
    tensor.set(i, static_cast<double>(label));
  }
}

}  // namespace lossgate::fuzz
