// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/dtype.h"

namespace lossgate {

/// The floating-point format with the most digits.
inline constexpr Dtype kWidestFormat = Dtype::f64;

}  // namespace lossgate
