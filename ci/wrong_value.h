// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ci/brought.h"
#include "ci/judgement.h"

namespace lossgate::ci {

/// Guilt of another kind: the numbers that a loss of the catalog gives for the case are finite and
/// not those of its formula, or not when its trainer splits the batch. Nothing where they are. Of a
/// function that shifts, the case is the formula's (ci/shifting.h), and places are as it was given
/// them, but for the token, which is that of the logits.
std::optional<Judgement> judge_by_formula(const Brought& brought, Case c);

}  // namespace lossgate::ci
