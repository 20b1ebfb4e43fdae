// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "reference/spec/case.h"

namespace lossgate::fuzz {

/// Numbers at which a formula changes its branch or a format ends.
class EdgeList {
 public:
  /// Left out where the list is full or the dtype has no such number.
  void add(Dtype dtype, double edge);
  std::span<const double> all() const& { return {edges_.data(), count_}; }
  std::span<const double> all() const&& = delete;  ///< would outlive the list

  /// Those added from now on are the case's own, not what every case has.
  void begin_own() { own_from_ = count_; }
  /// All where there are none.
  std::span<const double> own() const& {
    return own_from_ < count_ ? all().subspan(own_from_) : all();
  }
  std::span<const double> own() const&& = delete;

 private:
  std::array<double, 96> edges_{};
  std::size_t count_ = 0, own_from_ = 0;
};

/// Log-ratios, either sign: the usual clamps, clip edges and thresholds of exp in every format, and
/// the case's own, which its options put somewhere else: for an option x, x, a little beyond it,
/// log(1 + x), log(1 - x), log x.
EdgeList log_ratio_edges(const LossSpec& spec, Dtype dtype);

/// Differences of values: the options themselves, and where a square overflows.
EdgeList value_edges(const LossSpec& spec, Dtype dtype);

/// The neighbour `steps` away among the numbers of the format, never beyond the largest one.
double step_ulps(Dtype dtype, double value, int steps);

/// log x for finite x > 0 to about 2 ulps, made of +, -, * and / alone: the same on every platform.
double portable_log(double x);

}  // namespace lossgate::fuzz
