// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/property.h"

namespace lossgate::properties {

/// The outcome, where expectations are advice that comes from the subject itself
/// (reference::Advice). What needs none stands as it is: what is masked is inert, NaN surfaces, an
/// empty batch is 0, a finite loss has a finite gradient. A loss that is not finite stands where
/// the function itself made what overflows (properties/room.h). Splits, padding and permutations
/// stand in an arithmetic that rounds finely enough to judge; what else hangs on advice is a note.
Outcome as_advised(const Property& property, Evaluation& evaluation, Outcome outcome);

}  // namespace lossgate::properties
