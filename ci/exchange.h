// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/interview.h"

namespace lossgate::ci {

/// Of told options that are right at one value only, lets go of two where the function is the
/// formula with the one in the place of the other: it is to be asked there, and to be wrong. Says
/// so: "clip_low and clip_high are exchanged: it takes low for clip_high and high for clip_low".
std::vector<std::string> free_exchanged_options(Function& function, Interview& interview);

}  // namespace lossgate::ci
