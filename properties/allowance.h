// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "reference/filter.h"
#include "reference/real.h"
#include "reference/storage.h"
#include "reference/tracked.h"

/// What the rules ask of an entry, by an expectation as the reference has it or as the filter has.
namespace lossgate::properties {

using reference::storage_error;

template <class Expected = reference::Tracked>
double magnitude_of(const Expected& expected) {
  return static_cast<double>(std::fabs(expected.v));
}

/// Whether the output's dtype holds whatever the expectation allows.
template <class Expected = reference::Tracked>
bool in_range(const OutputInfo& output, const Expected& expected) {
  return magnitude_of(expected) + reference::kThreshold * expected.err + expected.half <=
         max_finite(output.dtype);
}

/// Whether value and peak of an expectation are certainly within range: there the actual must be
/// finite (rule C1). `peak` comes from the stable form.
template <class Expected = reference::Tracked>
bool must_be_finite(const Arithmetic& arithmetic, const OutputInfo& output,
                    const Expected& expected) {
  const double peak_margin = reference::kThreshold * expected.err + expected.half;
  return in_range(output, expected) &&
         expected.peak + peak_margin <= max_finite(arithmetic.compute);
}

/// The error allowed to a stored entry, storage included (rule B3): a distance beyond `half` is
/// wrong from kThreshold times this on. `exact` entries must be correctly rounded.
template <class Expected = reference::Tracked>
double allowed_error(const OutputInfo& output, const Expected& expected, bool exact = false) {
  // A zero that nothing can move is stored as it is.
  if (expected.is_exact_zero()) return 0.0;
  // At a kink the largest right answer is stored, too.
  return (exact ? 0.0 : expected.err) +
         storage_error(output, magnitude_of(expected) + expected.half);
}

/// What is allowed without a ratio, what with one, and both together (rule B3).
struct Allowance {
  double exempt, scaled, allowed;
};

template <class Expected = reference::Tracked>
Allowance allowance(const Arithmetic& arithmetic, const OutputInfo& output,
                    const Expected& expected, bool exact) {
  const double allowed = allowed_error(output, expected, exact);
  if (!reference::narrows(arithmetic, output) || expected.is_exact_zero()) {
    return {expected.half, allowed, allowed};
  }
  const double scaled = exact ? 0.0 : expected.err;
  const double largest = magnitude_of(expected) + expected.half + reference::kThreshold * scaled;
  return {expected.half + storage_error(output, largest), scaled, allowed};
}

}  // namespace lossgate::properties
