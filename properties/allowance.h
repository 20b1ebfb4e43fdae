// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "reference/filter.h"
#include "reference/real.h"
#include "reference/storage.h"
#include "reference/tracked.h"

/// What the rules ask of an entry, by an expectation as the reference has it or as the filter has.
namespace lossgate::properties {

template <class Expected = reference::Tracked>
double magnitude_of(const Expected& expected) {
  return static_cast<double>(std::fabs(expected.v));
}

/// Whether the output's dtype holds whatever the expectation allows.
template <class Expected = reference::Tracked>
bool in_range(const reference::Formats& formats, const Expected& expected) {
  return magnitude_of(expected) + reference::kThreshold * expected.err + expected.half <=
         formats.largest;
}

/// Whether value and peak of an expectation are certainly within range: there the actual must be
/// finite (rule C1). `peak` comes from the stable form.
template <class Expected = reference::Tracked>
bool must_be_finite(const reference::Formats& formats, const Expected& expected) {
  const double peak_margin = reference::kThreshold * expected.err + expected.half;
  return in_range(formats, expected) && expected.peak + peak_margin <= formats.largest_computed;
}

/// What is allowed without a ratio, what with one, and both together (rule B3).
struct Allowance {
  double exempt, scaled, allowed;
};

/// `exact` entries must be correctly rounded.
template <class Expected = reference::Tracked>
Allowance allowance(const reference::Formats& formats, const Expected& expected, bool exact) {
  // A zero that nothing can move is stored as it is.
  if (expected.is_exact_zero()) return {0.0, 0.0, 0.0};
  // At a kink the largest right answer is stored, too.
  const double largest = magnitude_of(expected) + expected.half;
  const double scaled = exact ? 0.0 : expected.err;
  const double allowed = scaled + formats.storage_error(largest);
  if (!formats.narrows) return {expected.half, allowed, allowed};
  const double stored = formats.storage_error(largest + reference::kThreshold * scaled);
  return {expected.half + stored, scaled, allowed};
}

}  // namespace lossgate::properties
