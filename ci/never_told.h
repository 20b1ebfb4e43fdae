// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/brought.h"

namespace lossgate::ci {

/// What a subject's callers get who leave a parameter alone, and no case asks: "temperature other
/// than 1, a parameter of the function whose own default is 2". A file that says options stay at
/// one value asks nothing else; a value that the option may not have is none that a case could ask.
std::vector<std::string> never_told(const Brought& brought);

/// At what it is asked of options that neither its file nor a parameter says: "kl_output_clamp 10".
std::vector<std::string> taken_as(const Brought& brought);

}  // namespace lossgate::ci
