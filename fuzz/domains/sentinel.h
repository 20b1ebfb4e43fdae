// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// What a producer left at the masked positions of a field.
enum class Sentinel {
  zero,
  as_valid,  ///< data as at any other position
  one,       ///< the 1.0 of trainers that mark an invalid log-prob
  minus_infinity,
  infinity,
  nan,
  nan_payload,  ///< a NaN with bits of its own, of either sign
  lowest,
  highest,
  minus_billion,  ///< -1e9, which is -inf in f16
  ten_thousand,
  minus_hundred,  ///< the ignore marker, in a field of numbers
  mixed,          ///< any of these, position by position
};

inline constexpr Sentinel kAllSentinels[] = {
    Sentinel::zero,     Sentinel::as_valid,      Sentinel::one,          Sentinel::minus_infinity,
    Sentinel::infinity, Sentinel::nan,           Sentinel::nan_payload,  Sentinel::lowest,
    Sentinel::highest,  Sentinel::minus_billion, Sentinel::ten_thousand, Sentinel::minus_hundred,
    Sentinel::mixed};

enum class LabelSentinel {
  ignore,  ///< -100
  zero,
  as_valid,
  vocab,  ///< one beyond the last
  minus_one,
  largest,    ///< of 32 bits
  beyond_32,  ///< 2^31 where the dtype holds it
  lowest,     ///< of the dtype
};

inline constexpr LabelSentinel kAllLabelSentinels[] = {
    LabelSentinel::ignore,    LabelSentinel::zero,      LabelSentinel::as_valid,
    LabelSentinel::vocab,     LabelSentinel::minus_one, LabelSentinel::largest,
    LabelSentinel::beyond_32, LabelSentinel::lowest};

Sentinel pick_sentinel(Temper temper, Choices& choices);
LabelSentinel pick_label_sentinel(Temper temper, Choices& choices);

/// Overwrites the field's entries at masked positions; `valid` has one entry per position and the
/// field the same number of entries at each.
void place_sentinels(const Column& column, std::span<const std::uint8_t> valid, Temper temper,
                     Choices& choices);

void place_label_sentinels(const Column& column, std::span<const std::uint8_t> valid,
                           std::int64_t vocab, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
