// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "properties/evaluation.h"
#include "properties/verdict.h"

/// What lies where the mask says that nothing counts. A cause is named by experiment: does the
/// violation vanish once plain zeros lie there?
namespace lossgate::properties {

/// Whether any position counts.
bool anything_counts(const CaseStudy& study);

/// Whether any position does not.
bool anything_masked(const CaseStudy& study);

/// The case, which may be the study's whole or its split, with 0 for each value of a float field
/// at a masked position that `wanted` selects; where no position counts, weights and biases are
/// behind the mask as well. Nothing where that changes nothing.
std::optional<Case> zeroed_behind_mask(
    const CaseStudy& study, Case c,
    const std::function<bool(const Field&, double)>& wanted = nullptr);

/// Whether it is data behind the mask that makes this entry of the whole case's result non-finite.
bool comes_from_behind_mask(Evaluation& evaluation, const OutputInfo& output, std::int64_t index);

/// The class of a violation that is no number: "empty divisor" where nothing counts in the study
/// and zeros do not help, else `otherwise`.
const char* cause_of_no_number(Evaluation& evaluation, const CaseStudy& study,
                               const char* otherwise);

/// The class of a violation that data behind the mask makes.
const char* cause_of_data(const Violation& violation);

}  // namespace lossgate::properties
