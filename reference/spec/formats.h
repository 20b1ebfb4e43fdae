// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reference/spec/dtype.h"

namespace lossgate {

/// The floating-point format with the most digits.
inline constexpr Dtype kWidestFormat = Dtype::f64;

/// The floating-point formats with fewer digits than this one, most digits first.
inline std::vector<Dtype> narrower_formats(Dtype dtype) {
  std::vector<Dtype> formats;
  for (const Dtype format : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (unit_roundoff(format) > unit_roundoff(dtype)) formats.push_back(format);
  }
  return formats;
}

}  // namespace lossgate
