// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ci/selection.h"
#include "ci/waivers.h"

namespace lossgate::ci {

/// The names that a fingerprint may hold, whatever a run asks of them.
struct KnownNames {
  std::map<std::string, std::vector<std::string>> implementations = {};  ///< by loss
  std::vector<std::string> properties = {};
  bool all = true;  ///< no build has more implementations
};

/// A line for each loss, implementation or property that the policy's waivers and baseline name and
/// that does not exist, or, where there may be others, that looks like a slip: what is misspelt
/// accepts nothing, and would be idle for ever unnoticed.
std::vector<std::string> misfits(const Policy& policy, const KnownNames& known);

/// The same, of the catalog and of what the filters' files bring.
std::vector<std::string> misfits(const Policy& policy, const Filters& filters);

}  // namespace lossgate::ci
