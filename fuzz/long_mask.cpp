// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_mask.h"

#include <algorithm>
#include <span>

#include "fuzz/domains/mask.h"

namespace lossgate::fuzz {
namespace {

/// Of so many positions one is masked: more than enough to show, and so few that the others fill
/// 16 bits.
constexpr double kMasked = 1.0 / 128;

/// As batches are padded: from a quarter of a sequence to three, on one side for all, so that whole
/// blocks of a length which they fill hold nothing.
void pad(const LossSignature& signature, const Case& frame, std::span<std::uint8_t> valid,
         Choices& choices) {
  const std::int64_t tokens = frame.shape.positions();
  const auto rows = static_cast<std::int64_t>(valid.size()) / std::max<std::int64_t>(tokens, 1);
  const bool left = !signature.prefix_mask && choices.sometimes(0.5);
  for (std::int64_t row = 0; row + 1 < rows; ++row) {
    const std::int64_t padding = choices.integer(tokens / 4, tokens - tokens / 4);
    const std::int64_t first = row * tokens + (left ? 0 : tokens - padding);
    std::fill_n(valid.begin() + first, padding, std::uint8_t{0});
  }
  if (rows < 2 || !allows_empty_rows(signature, frame.spec)) return;
  if (rows == 2 && choices.sometimes(0.5)) return;
  std::fill_n(valid.begin() + choices.integer(0, rows - 2) * tokens, tokens, std::uint8_t{0});
}

}  // namespace

std::vector<std::uint8_t> draw_few(std::int64_t count, int others, Choices& choices) {
  std::vector<std::uint8_t> kept(static_cast<std::size_t>(count), 0);
  kept.front() = kept.back() = 1;
  for (std::int64_t at = 1; at < count; at *= 2) {
    kept[static_cast<std::size_t>(at)] = kept[static_cast<std::size_t>(count - 1 - at)] = 1;
  }
  for (int i = 0; i < others; ++i) {
    kept[static_cast<std::size_t>(choices.integer(0, count - 1))] = 1;
  }
  return kept;
}

bool is_padded(const Length& length) {
  return length.form == LongForm::padded ||
         (length.form == LongForm::other_option && length.extents.axis == Axis::tokens);
}

std::vector<std::uint8_t> draw_long_mask(const LossSignature& signature, const Case& frame,
                                         const Length& length, Choices& choices) {
  const std::int64_t sequences = std::max<std::int64_t>(frame.shape[Axis::sequences], 1);
  const std::int64_t tokens = frame.shape.positions();
  const std::vector<std::uint8_t> all(static_cast<std::size_t>(sequences * tokens), 1);
  if (length.form == LongForm::whole) return all;
  if (is_padded(length)) {
    std::vector<std::uint8_t> valid = all;
    pad(signature, frame, valid, choices);
    return valid;
  }
  if (sequences * tokens < kMany) return all;
  const bool thin = length.form == LongForm::thin;
  std::vector<std::uint8_t> valid = thin ? draw_few(sequences * tokens, 8, choices) : all;
  for (std::uint8_t& position : valid) position &= thin || !choices.sometimes(kMasked);
  valid.back() = 1;
  if (!allows_empty_rows(signature, frame.spec)) revive_rows(valid, all, tokens, choices);
  if (signature.prefix_mask) std::fill(valid.end() - tokens, valid.end(), std::uint8_t{1});
  return valid;
}

}  // namespace lossgate::fuzz
