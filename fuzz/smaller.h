// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rapidcheck/Seq.h>

#include <cstdint>

#include "reference/spec/case.h"

namespace lossgate::fuzz {

/// Cases that are one step simpler, the boldest steps first: whole and contiguous with an upstream
/// gradient of 1; fewer sequences, tokens, entries of a list, tokens of a vocabulary, hidden units;
/// default options; plain entries; round numbers. Some may be invalid; none is the case itself.
rc::Seq<Case> smaller_cases(const LossSignature& signature, const Case& c);

/// How much of a case a reader has to look at: entries that are not plain (0, or 1 in a mask) and
/// options that are not at their default.
std::int64_t unusual_numbers(const LossSignature& signature, const Case& c);

}  // namespace lossgate::fuzz
