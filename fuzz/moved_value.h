// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// Moves one entry of the field: a number by some units in the last place, to an edge of formula or
/// format, to its negative, its double or half, to 0; a label to another token; an entry of a mask
/// below the positions to its contrary. Behind the mask it becomes what the contract lets a caller
/// leave. The entry stays where the move would make the case one that its signature does not
/// accept. A benign profile knows no edges, but random bits.
void move_value(const LossSignature& signature, const Field& field, Profile profile, Case& c,
                Choices& choices);

}  // namespace lossgate::fuzz
