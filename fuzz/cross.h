// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/choices.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// A case made of two: options and surroundings of either, the shape and mask of the first and, at
/// positions that count in both, the data of either, quantity by quantity.
Case crossed(const LossSignature& signature, const Case& first, const Case& second,
             Choices& choices);

}  // namespace lossgate::fuzz
