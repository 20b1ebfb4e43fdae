// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// An extent, that which the signature pins or at least 1, for every axis that a field or output of
/// the signature has; at least 2 for the vocabulary. The largest field stays small enough for tens
/// of thousands of cases a second; rows without a valid token come from the mask, not from an
/// extent of 0.
Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices);

/// The axes along which production is far longer than what draw_shape draws: those that a field
/// has, that the signature does not pin, and that callers do not promise to keep as short.
std::vector<Axis> long_axes(const LossSignature& signature);

/// How long production is along that one of them, or as callers promise at most: a little beyond
/// what blocks, tiles and grids of threads end at.
std::int64_t long_extent(const LossSignature& signature, Axis axis);

/// A shape that is so long along that axis, and short along all others.
Shape draw_long_shape(const LossSignature& signature, Axis axis, Choices& choices);

/// What a loss has to go through: every combination of places on its axes.
std::int64_t work(const Shape& shape);

}  // namespace lossgate::fuzz
