// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lossgate::ci {

/// The verb `check`: loads the subjects of these files and prints how each will be asked: which
/// parameter gets what, which options are fixed, what its callers leave at masked positions. Asks a
/// few cases, and proposes the line of the contract that a failure looks like; it writes none.
/// Then, unless it is to be quick, tries what more the function would keep.
int run_check(const std::vector<std::string>& configs, bool quick);

}  // namespace lossgate::ci
