// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/evaluation.h"
#include "properties/verdict.h"

/// One function a property, in the file of its name; finite.cpp holds the three of finiteness. The
/// statements stand in the catalog.
namespace lossgate::properties {

Outcome finite_forward(Evaluation& evaluation);
Outcome finite_backward(Evaluation& evaluation);
Outcome finite_for_every_finite_input(Evaluation& evaluation);
Outcome masked_positions_inert(Evaluation& evaluation);
Outcome no_laundering(Evaluation& evaluation);
Outcome error_on_invalid(Evaluation& evaluation);
Outcome empty_is_zero(Evaluation& evaluation);
Outcome zero_advantage_zero_gradient(Evaluation& evaluation);
Outcome reference_agreement(Evaluation& evaluation);
Outcome split_invariance(Evaluation& evaluation);
Outcome padding_invariance(Evaluation& evaluation);
Outcome permutation_invariance(Evaluation& evaluation);
Outcome inputs_not_mutated(Evaluation& evaluation);
Outcome determinism(Evaluation& evaluation);
Outcome grad_mode_invariance(Evaluation& evaluation);
Outcome on_policy_identity(Evaluation& evaluation);
Outcome bounds_hold(Evaluation& evaluation);
Outcome path_parity(Evaluation& evaluation);
Outcome gradient_matches_finite_difference(Evaluation& evaluation);

}  // namespace lossgate::properties
