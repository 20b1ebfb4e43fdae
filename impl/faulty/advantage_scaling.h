// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"

/// What a trainer does to the advantages of a whole mini-batch so that micro-batches need only sum
/// their terms. Scaled advantages are stored in f64: in a narrower format small ones would vanish.
namespace lossgate::impl {

/// Multiplies each advantage by the weight of its token in the loss; masked ones become 0.
void scale_advantages(const LossSignature& signature, Case& c);

/// Faulty: once for the policy and once more for the critic, on the same buffer.
void scale_advantages_twice(const LossSignature& signature, Case& c);

/// Faulty: in steps of one micro-batch, so that what is left over at the end stays 0.
void scale_advantages_without_remainder(const LossSignature& signature, Case& c);

}  // namespace lossgate::impl
