// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/arithmetic.h"
#include "reference/spec/result.h"

namespace lossgate::reference {

/// What the formats of an output, and of what computes it, say of every entry: read once.
struct Formats {
  /// Computed in the widest format unless said otherwise.
  explicit Formats(const OutputInfo& output, Dtype compute = Dtype::f64)
      : largest(max_finite(output.dtype)),
        largest_computed(max_finite(compute)),
        roundoff(is_float(output.dtype) ? unit_roundoff(output.dtype) : 0.0),
        eta(is_float(output.dtype) ? min_subnormal(output.dtype) : 0.0),
        narrows(roundoff > unit_roundoff(compute)) {}

  /// What storing a result of this magnitude in the output's own dtype adds to its error: u_out |x|
  /// + eta_out (rule B3); nothing for integers.
  template <class Number>
  Number storage_error(Number magnitude) const {
    return roundoff * magnitude + eta;
  }

  double largest, largest_computed;
  double roundoff, eta;
  /// Whether storing the output rounds what was computed in a wider format: once, and by no more
  /// than storage_error. T is for first-order estimates, not for that (rule B3).
  bool narrows;
};

/// What becomes of a number of this magnitude that is formed exactly on its way through a stage
/// into that dtype: what a flush takes, and the formats that are declared there, or computed in,
/// which are coarser.
inline double passing_error(const Arithmetic& arithmetic, Stage stage, Dtype dtype,
                            double magnitude) {
  const Store& store = arithmetic.stage(stage);
  const double passed = arithmetic.flush + store.roundoff * magnitude + store.eta;
  const bool computed_coarser = arithmetic.roundoff > unit_roundoff(dtype);
  return passed + (computed_coarser ? arithmetic.roundoff * magnitude + arithmetic.eta : 0.0);
}

inline double storage_error(const OutputInfo& output, double magnitude) {
  return Formats(output).storage_error(magnitude);
}

}  // namespace lossgate::reference
