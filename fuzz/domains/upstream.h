// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// A gradient that comes from above, exact in the dtype: 1, 0, -1, powers of two, 2^16 and 2^24 as
/// loss scalers have them, anything.
double draw_upstream(Temper temper, Dtype dtype, Choices& choices);

/// A gradient tensor: uniform, one-hot or free.
void draw_upstream_field(const Column& column, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
