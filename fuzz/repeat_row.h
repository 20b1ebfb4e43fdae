// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/choices.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// Now and then gives a sequence all that another one has, as a group has its sample twice.
void repeat_a_row(const LossSignature& signature, Choices& choices, Case& c);

}  // namespace lossgate::fuzz
