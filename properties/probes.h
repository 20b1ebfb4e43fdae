// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/suspect.h"

/// One function a hypothesis, or a few that one experiment tells apart. Each says nothing where its
/// experiment does not show what it looks for.
namespace lossgate::properties {

using Opinion = std::optional<Diagnosis>;

/// Of an answer, whatever the case: sequences have each other's numbers.
Opinion other_row(const Reading& reading);

/// The case at fault, with zeros behind the mask where that does not mend it.
std::optional<Reading> wrong_as_given(Suspect& suspect);

/// Whether errors are other ones as soon as all inputs move a little. What a wrong formula gives
/// moves as little as they do.
bool is_erratic(const Suspect& suspect, const Reading& reading);

/// Rounding takes no more of a loss, in any format.
inline constexpr double kLargestRounding = 1.0 / 64;

// An answer that differs from the formula on plain cases.
Opinion probe_rounding(Suspect& suspect);
Opinion probe_format(Suspect& suspect);
Opinion probe_constant_in_logarithm(Suspect& suspect);
Opinion probe_floor(Suspect& suspect);
Opinion probe_sign(Suspect& suspect);
Opinion probe_masked_terms(Suspect& suspect);
Opinion probe_dead_gradient(Suspect& suspect);
Opinion probe_gradient(Suspect& suspect);
Opinion probe_filtered_gradient(Suspect& suspect);
Opinion probe_factor(Suspect& suspect);
Opinion probe_weights(Suspect& suspect);
Opinion probe_baseline(Suspect& suspect);
Opinion probe_deviation(Suspect& suspect);
Opinion probe_gaps(Suspect& suspect);
Opinion probe_groups(Suspect& suspect);
Opinion probe_differences(Suspect& suspect);
Opinion probe_broadcast(Suspect& suspect);
Opinion probe_steps(Suspect& suspect);
Opinion probe_options(Suspect& suspect);
Opinion probe_power(Suspect& suspect);
Opinion probe_other_number(Suspect& suspect);
Opinion probe_fields(Suspect& suspect);
Opinion probe_lone(Suspect& suspect);
Opinion probe_bound(Suspect& suspect);
Opinion probe_through_limit(Suspect& suspect);
Opinion probe_cap(Suspect& suspect);
Opinion probe_early_mean(Suspect& suspect);
Opinion probe_needed_options(Suspect& suspect);
Opinion probe_rows(Suspect& suspect);
Opinion probe_positions(Suspect& suspect);
Opinion probe_last_class(Suspect& suspect);
Opinion probe_lost_classes(Suspect& suspect);

// An answer that differs, or is not finite, on edges alone.
Opinion probe_dead_clamp(Suspect& suspect);
Opinion probe_sum(Suspect& suspect);
Opinion probe_empty(Suspect& suspect);
Opinion probe_kinds(Suspect& suspect);
Opinion probe_logits(Suspect& suspect);
Opinion probe_repaired_value(Suspect& suspect);
Opinion probe_tail(Suspect& suspect);
Opinion probe_exponents(Suspect& suspect);
Opinion probe_own_overflow(Suspect& suspect);

// What an answer depends on beside the formula's inputs.
Opinion probe_state(Suspect& suspect);
Opinion probe_strides(Suspect& suspect);
Opinion probe_upstream(Suspect& suspect);
Opinion probe_length(Suspect& suspect);
Opinion probe_single(Suspect& suspect);
Opinion probe_refusal(Suspect& suspect);

// What stands behind a mask, and splits.
Opinion probe_behind_mask(Suspect& suspect);
Opinion probe_emptied_row(Suspect& suspect);
Opinion probe_message(Suspect& suspect);
Opinion probe_statistics(Suspect& suspect);
Opinion probe_cancelled_deviation(Suspect& suspect);
Opinion probe_split(Suspect& suspect);

}  // namespace lossgate::properties
