// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/external/subject.h"
#include "reference/spec/case.h"

/// Functions that move labels by one position themselves: what they are given `as shifted` has one
/// position more than the formula's, as the worker's shift.py says.
namespace lossgate::ci {

bool shifts(const impl::Subject& subject);

/// Whether such a function takes the field from its second position on, as it takes labels: what is
/// said of a token. What is computed at a position, for the next token, it takes but for its last.
bool is_of_token(const Field& field);

/// The formula's case, where each field along positions is as the function was given it: logits at
/// t beside the label at t + 1. Of no position, the same.
Case paired_with_the_next(const LossSignature& signature, Case c);

}  // namespace lossgate::ci
