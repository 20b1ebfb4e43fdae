// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// An extent, that which the signature pins or at least 1, for every axis that a field or output of
/// the signature has; at least 2 for the vocabulary. The largest field stays small enough for tens
/// of thousands of cases a second; rows without a valid token come from the mask, not from an
/// extent of 0.
Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices);

/// What a loss has to go through: every combination of places on its axes.
std::int64_t work(const Shape& shape);

}  // namespace lossgate::fuzz
