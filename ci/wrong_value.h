// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ci/brought.h"
#include "ci/judgement.h"

namespace lossgate::ci {

/// Guilt of another kind: the numbers that a loss of the catalog gives for the case are finite and
/// not those of its formula, or not when its trainer splits the batch. Nothing where they are.
std::optional<Judgement> judge_by_formula(const Brought& brought, Case c);

}  // namespace lossgate::ci
