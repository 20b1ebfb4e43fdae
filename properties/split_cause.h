// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "properties/evaluation.h"
#include "properties/verdict.h"

namespace lossgate::properties {

/// What was done wrong with the parts of the case's split, where the entry there is not the whole
/// batch's: named by experiment, with the same parts on one rank and with each part as a batch of
/// its own.
std::string cause_of_split(Evaluation& evaluation, const Place& place);

}  // namespace lossgate::properties
