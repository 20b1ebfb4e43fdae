// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reference/spec/arithmetic.h"

/// Value and bound of every entry in double, several positions at once: most verdicts need no more.
namespace lossgate::reference {

struct Loss;
struct Problem;

/// An expectation as the filter has it: v and half within kFilterSlack of err, err of itself, and
/// peak of both, of what Tracked has (rule B9). What a branch leaves open is rounded as well, so an
/// error is never far smaller than a half-width.
struct Approximate {
  double v = 0.0, err = 0.0, peak = 0.0, half = 0.0;

  bool is_exact_zero() const { return peak == 0.0 && v == 0.0 && err == 0.0 && half == 0.0; }
};

/// Of every entry of one output, each part by itself, as vectors read them.
struct ApproximateEntries {
  explicit ApproximateEntries(std::size_t size) : v(size), err(size), peak(size), half(size) {}

  std::size_t size() const { return v.size(); }
  Approximate operator[](std::size_t i) const { return {v[i], err[i], peak[i], half[i]}; }

  std::vector<double> v, err, peak, half;
};

/// Of every output.
using Approximation = std::vector<ApproximateEntries>;

/// Nothing where double leaves anything open: a branch on its own edge, what is not finite, what
/// may not fit the compute format.
using Approximator = std::optional<Approximation> (*)(const Problem&, const Arithmetic&);

/// Of the formula that the loss evaluates, one for each instruction set that this machine has, the
/// widest first; none where the loss does not say kByPosition: its positions are not alike, or do
/// not stand alone.
const std::vector<Approximator>& approximators_of(const Loss& loss);

/// Whether double is so much finer than the arithmetic that its own errors hardly count (rule B9).
bool is_coarse(const Arithmetic& arithmetic);

}  // namespace lossgate::reference
