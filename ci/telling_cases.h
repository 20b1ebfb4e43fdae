// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ci/likeness.h"
#include "impl/external/subject.h"

namespace lossgate::ci {

/// The loss as a subject is asked it, away from every edge: masked positions hold zeros, no split,
/// and means over sequences never meet an empty one.
LossSignature plain_signature(const reference::Loss& loss, const impl::Subject& subject,
                              Dtype dtype);

/// A few benign cases in which every option that such cases can tell makes a difference, and so
/// does every reduction. All options stand at `values`, or else at their defaults.
std::vector<Case> telling_cases(const reference::Loss& loss, const Formula& formula,
                                const OptionValues& values);

/// Cases on edges, which clamps and bounds are made for.
std::vector<Case> hostile_cases(const Formula& formula);

/// Cases on which the first of some candidates is another function than others are.
struct TellingCases {
  std::vector<Case> cases;
  std::vector<bool> apart;  ///< of each candidate, whether one of the cases tells it from the first
};

/// More hostile ones.
TellingCases hostile_cases_that_tell(const Formula& formula,
                                     const std::vector<Candidate>& candidates);

/// Those of these that do.
TellingCases cases_that_tell(const Formula& formula, const std::vector<Candidate>& candidates,
                             const std::vector<Case>& cases);

}  // namespace lossgate::ci
