// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reference/filter.h"
#include "reference/lanes/vectors.h"
#include "reference/real.h"
#include "reference/storage.h"
#include "reference/tracked.h"

/// What the rules ask of an entry, by an expectation as the reference has it or as the filter has.
namespace lossgate::properties {

template <class Expected = reference::Tracked>
auto magnitude_of(const Expected& expected) {
  if constexpr (std::is_arithmetic_v<decltype(expected.v)>) {
    return static_cast<double>(std::fabs(expected.v));
  } else {
    return reference::size_of_each(expected.v);
  }
}

/// The largest magnitude that the expectation allows: of an error without end anything, unlike a
/// peak (tracking::most), which knows nothing of it.
template <class Expected = reference::Tracked>
auto most_allowed(const Expected& expected) {
  return magnitude_of(expected) + reference::kThreshold * expected.err + expected.half;
}

/// Whether the output's dtype holds whatever the expectation allows.
template <class Expected = reference::Tracked>
auto in_range(const reference::Formats& formats, const Expected& expected) {
  return most_allowed(expected) <= formats.largest;
}

/// Whether an expectation and all that is made on the way to it are certainly within range: there
/// the actual must be finite (rule C1). `peak` comes from the stable form.
template <class Expected = reference::Tracked>
auto must_be_finite(const reference::Formats& formats, const Expected& expected) {
  const auto most = most_allowed(expected);
  const auto fits = most <= formats.largest;
  return static_cast<decltype(fits)>(fits & (most <= formats.largest_computed) &
                                     (expected.peak <= formats.largest_computed));
}

/// The expectation of a per-token value that nothing rounds but the formats which it passes.
inline reference::Tracked correctly_rounded(const OutputInfo& output, reference::Tracked expected,
                                            const Arithmetic& arithmetic) {
  const double passing = reference::passing_error(arithmetic, Stage::per_token, output.dtype,
                                                  magnitude_of(expected) + expected.half);
  expected.err = std::min(expected.err, passing);
  return expected;
}

/// What is allowed without a ratio, what with one, and both together (rule B3).
template <class Number = double>
struct Allowance {
  Number exempt, scaled, allowed;
};

/// Of an expectation that is no exact zero.
template <class Expected = reference::Tracked>
auto allowance_unless_zero(const reference::Formats& formats, const Expected& expected) {
  // At a kink the largest right answer is stored, too.
  const auto largest = magnitude_of(expected) + expected.half;
  const auto scaled = expected.err;
  const auto allowed = scaled + formats.storage_error(largest);
  using Number = std::remove_const_t<decltype(allowed)>;
  if (!formats.narrows) return Allowance<Number>{expected.half, allowed, allowed};
  const auto stored = formats.storage_error(largest + reference::kThreshold * scaled);
  return Allowance<Number>{expected.half + stored, scaled, allowed};
}

/// A zero that nothing can move is stored as it is.
template <class Expected = reference::Tracked>
Allowance<> allowance(const reference::Formats& formats, const Expected& expected) {
  if (expected.is_exact_zero()) return {0.0, 0.0, 0.0};
  return allowance_unless_zero(formats, expected);
}

}  // namespace lossgate::properties
