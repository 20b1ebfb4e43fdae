// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/spec/arithmetic.h"

namespace lossgate::reference {

/// What every format that a number passes can hold: magnitudes from the smallest normal one on.
struct Exponents {
  explicit Exponents(const Arithmetic& arithmetic) {
    narrow_to(arithmetic.compute);
    for (const Store& store : arithmetic.stages) {
      if (store.roundoff == 0.0) continue;
      largest = std::min(largest, store.largest);
      // A significand is 1 / (2 u) steps of eta where it begins to be a full one.
      least_normal = std::max(least_normal, store.eta / (2.0 * store.roundoff));
    }
  }

  void narrow_to(Dtype dtype) {
    largest = std::min(largest, max_finite(dtype));
    least_normal = std::max(least_normal, min_normal(dtype));
  }

  double largest = max_finite(Dtype::f64), least_normal = min_normal(Dtype::f64);
};

/// By how much numbers differ that are the same to half of their digits, relative to them.
inline double half_of_digits(Dtype dtype) { return std::sqrt(unit_roundoff(dtype)); }

}  // namespace lossgate::reference
