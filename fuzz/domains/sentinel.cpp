// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/sentinel.h"

#include <algorithm>
#include <limits>

#include "reference/spec/masked.h"

namespace lossgate::fuzz {
namespace {

constexpr Share<Sentinel> kSentinels[] = {
    {Sentinel::zero, {3, 1, 1}},         {Sentinel::as_valid, {3, 4, 3}},
    {Sentinel::one, {0, 2, 2}},          {Sentinel::minus_infinity, {0, 3, 3}},
    {Sentinel::infinity, {0, 1, 1}},     {Sentinel::nan, {0, 2, 2}},
    {Sentinel::nan_payload, {0, 1, 1}},  {Sentinel::lowest, {0, 2, 2}},
    {Sentinel::highest, {0, 1, 1}},      {Sentinel::minus_billion, {0, 2, 2}},
    {Sentinel::ten_thousand, {0, 2, 2}}, {Sentinel::minus_hundred, {0, 1, 1}},
    {Sentinel::mixed, {0, 2, 3}},
};

constexpr Share<LabelSentinel> kLabelSentinels[] = {
    {LabelSentinel::ignore, {4, 3, 2}},    {LabelSentinel::zero, {2, 1, 1}},
    {LabelSentinel::as_valid, {2, 2, 1}},  {LabelSentinel::vocab, {0, 2, 2}},
    {LabelSentinel::minus_one, {0, 2, 2}}, {LabelSentinel::largest, {0, 1, 1}},
    {LabelSentinel::beyond_32, {0, 1, 1}}, {LabelSentinel::lowest, {0, 1, 1}},
};

/// A quiet NaN with low bits set. Its quiet bit is what tells the format's plain NaN from infinity.
void store_nan_payload(Tensor& tensor, std::int64_t index, Choices& choices) {
  const Dtype dtype = tensor.dtype;
  std::byte bits[8];
  encode(dtype, std::numeric_limits<double>::infinity(), bits);
  const std::uint64_t infinity = load_bits(dtype, bits);
  encode(dtype, std::numeric_limits<double>::quiet_NaN(), bits);
  const std::uint64_t nan = load_bits(dtype, bits) | infinity;
  const std::uint64_t quiet = nan ^ infinity;
  const auto payload = static_cast<std::uint64_t>(choices.integer(1, 0x1234567));
  const std::uint64_t low = std::max<std::uint64_t>(payload & (quiet - 1), 1);
  const std::uint64_t sign =
      choices.sometimes(0.5) ? std::uint64_t{1} << (8 * size_of(dtype) - 1) : 0;
  store_bits(dtype, nan | low | sign, tensor.element(index));
}

/// Whether a caller may leave it at a masked position: an index beyond the vocabulary is to labels
/// what NaN is to numbers.
bool allowed(Masked masked, LabelSentinel sentinel) {
  return masked == Masked::anything || sentinel == LabelSentinel::zero ||
         sentinel == LabelSentinel::as_valid;
}

bool allowed(Masked masked, Sentinel sentinel) {
  switch (masked) {
    case Masked::anything:
      return true;
    case Masked::zero:
      return sentinel == Sentinel::zero;
    case Masked::minus_infinity:
      return sentinel == Sentinel::minus_infinity || allowed(Masked::ordinary, sentinel);
    case Masked::finite:
      break;
    case Masked::ordinary:
      if (sentinel == Sentinel::minus_billion) return false;
      return sentinel != Sentinel::lowest && sentinel != Sentinel::highest &&
             allowed(Masked::finite, sentinel);
  }
  return sentinel != Sentinel::minus_infinity && sentinel != Sentinel::infinity &&
         sentinel != Sentinel::nan && sentinel != Sentinel::nan_payload;
}

void place(Sentinel sentinel, Tensor& tensor, std::int64_t index, Choices& choices) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (sentinel) {
    case Sentinel::zero:
      return tensor.set(index, 0.0);
    case Sentinel::as_valid:
    case Sentinel::mixed:
      return;
    case Sentinel::one:
      return tensor.set(index, 1.0);
    case Sentinel::minus_infinity:
      return tensor.set(index, -kInfinity);
    case Sentinel::infinity:
      return tensor.set(index, kInfinity);
    case Sentinel::nan:
      return tensor.set(index, std::numeric_limits<double>::quiet_NaN());
    case Sentinel::nan_payload:
      return store_nan_payload(tensor, index, choices);
    case Sentinel::lowest:
      return tensor.set(index, -max_finite(tensor.dtype));
    case Sentinel::highest:
      return tensor.set(index, max_finite(tensor.dtype));
    case Sentinel::minus_billion:
      return tensor.set(index, -1e9);
    case Sentinel::ten_thousand:
      return tensor.set(index, 1e4);
    case Sentinel::minus_hundred:
      return tensor.set(index, -100.0);
  }
}

/// Calls `at(index)` for every entry at a masked position.
template <class At>
void for_each_masked(const Tensor& tensor, std::span<const std::uint8_t> valid, At at) {
  if (valid.empty()) return;
  const std::int64_t entries = tensor.size() / static_cast<std::int64_t>(valid.size());
  for (std::size_t position = 0; position < valid.size(); ++position) {
    if (valid[position]) continue;
    const std::int64_t begin = static_cast<std::int64_t>(position) * entries;
    for (std::int64_t i = begin; i < begin + entries; ++i) at(i);
  }
}

std::int64_t illegal_label(LabelSentinel sentinel, Dtype dtype, std::int64_t vocab) {
  constexpr std::int64_t kLargest32 = std::numeric_limits<std::int32_t>::max();
  const bool wide = dtype == Dtype::i64;
  switch (sentinel) {
    case LabelSentinel::vocab:
      return vocab;
    case LabelSentinel::minus_one:
      return -1;
    case LabelSentinel::largest:
      return kLargest32;
    case LabelSentinel::beyond_32:
      return wide ? kLargest32 + 1 : kLargest32;
    case LabelSentinel::lowest:
      return wide ? std::numeric_limits<std::int64_t>::min()
                  : std::numeric_limits<std::int32_t>::min();
    case LabelSentinel::ignore:
      return kIgnoreLabel;
    default:
      return 0;
  }
}

}  // namespace

Sentinel pick_sentinel(Temper temper, Choices& choices) {
  return pick(kSentinels, temper, choices);
}

LabelSentinel pick_label_sentinel(Temper temper, Choices& choices) {
  return pick(kLabelSentinels, temper, choices);
}

void place_sentinels(const Column& column, std::span<const std::uint8_t> valid, Temper temper,
                     Choices& choices) {
  const Masked masked = column.field->masked;
  const auto draw = [&] {
    const Sentinel sentinel = pick(kSentinels, temper, choices);
    if (allowed(masked, sentinel)) return sentinel;
    return masked == Masked::minus_infinity ? Sentinel::minus_infinity : Sentinel::zero;
  };
  const Sentinel common = draw();
  Tensor& tensor = *column.tensor;
  if (common != Sentinel::as_valid) {
    for_each_masked(tensor, valid, [&](std::int64_t i) {
      place(common == Sentinel::mixed ? draw() : common, tensor, i, choices);
    });
  }
  if (masked == Masked::anything) return;
  const Quantity quantity = column.field->quantity;
  for_each_masked(tensor, valid,
                  [&](std::int64_t i) { tensor.set(i, kept(masked, quantity, tensor.at(i))); });
}

void place_label_sentinels(const Column& column, std::span<const std::uint8_t> valid,
                           std::int64_t vocab, Temper temper, Choices& choices) {
  const LabelSentinel common = pick(kLabelSentinels, temper, choices);
  const bool mixed = temper != Temper::plain && choices.sometimes(0.3);
  Tensor& tensor = *column.tensor;
  for_each_masked(tensor, valid, [&](std::int64_t i) {
    const LabelSentinel sentinel = mixed ? pick(kLabelSentinels, temper, choices) : common;
    if (sentinel == LabelSentinel::as_valid || !allowed(column.field->masked, sentinel)) return;
    tensor.set(i, static_cast<double>(illegal_label(sentinel, tensor.dtype, vocab)));
  });
}

}  // namespace lossgate::fuzz
