// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/arithmetic.h"

namespace lossgate::reference {

/// The same arithmetic, in which nothing rounds but sums and matrix products. What has no error in
/// it is exact of equal numbers: their difference is 0, their quotient 1, and functions of these
/// are what they are, in whatever format that is stored.
inline Arithmetic rounding_in_sums_alone(Arithmetic arithmetic) {
  arithmetic.roundoff = arithmetic.eta = arithmetic.flush = 0.0;
  arithmetic.stages = {};
  return arithmetic;
}

}  // namespace lossgate::reference
