// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reference/spec/case.h"

/// Cases that differ in how far numbers are from each other, and in how unlikely tokens are.
namespace lossgate::properties {

/// The case with each number that is farther from its twin, or from 0, than `limit` at that
/// distance instead.
Case with_far_ones_at(const LossSignature& signature, Case c, double limit, double distance);

/// Of log-probs that are held against each other the lowest at each place that counts; 0 elsewhere.
std::vector<double> lowest_log_probs(const LossSignature& signature, const Case& c);

/// The case with all of them at a place moved alike, so that the lowest is that number.
Case with_lowest_at(const LossSignature& signature, Case c, double least);

/// The case with that token of each sequence alone which is farthest from its twin, or from 0.
Case with_farthest_tokens(const LossSignature& signature, Case c);

}  // namespace lossgate::properties
