// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"

namespace lossgate::ci {

/// Makes of a case one that the contract as declared allows, too.
using Tame = void (*)(const LossSignature&, Case&);

/// What stands at masked positions is seen to by whoever asks.
void as_it_is(const LossSignature&, Case&);

/// A filter's -inf becomes a number that no model gives.
void without_infinities(const LossSignature& signature, Case& c);

void with_long_labels(const LossSignature& signature, Case& c);

}  // namespace lossgate::ci
