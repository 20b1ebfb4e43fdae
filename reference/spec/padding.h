// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Masks of callers who pad on the right (LossSignature::prefix_mask): `lengths = mask.sum(-1)`
/// says as much as the mask.
namespace lossgate {

/// Whether in every sequence the positions that count are its first ones.
bool valid_come_first(const LossSignature& signature, const Case& c);

/// Where the signature says so, moves them there with everything that stands at them; those that
/// count, and those that do not, stay in their order.
void move_valid_first(const LossSignature& signature, Case& c);

}  // namespace lossgate
