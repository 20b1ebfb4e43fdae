// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/arithmetic.h"
#include "reference/spec/result.h"

namespace lossgate::reference {

/// What storing a result of this magnitude in the output's own dtype adds to its error: u_out |x| +
/// eta_out (rule B3); nothing for integers.
inline double storage_error(const OutputInfo& output, double magnitude) {
  return is_float(output.dtype)
             ? unit_roundoff(output.dtype) * magnitude + min_subnormal(output.dtype)
             : 0.0;
}

/// Whether storing the output rounds what was computed in a wider format: once, and by no more than
/// storage_error. T is for first-order estimates, not for that (rule B3).
inline bool narrows(const Arithmetic& arithmetic, const OutputInfo& output) {
  return is_float(output.dtype) && unit_roundoff(output.dtype) > unit_roundoff(arithmetic.compute);
}

}  // namespace lossgate::reference
