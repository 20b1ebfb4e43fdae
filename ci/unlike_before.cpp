// SPDX-License-Identifier: Apache-2.0
#include "ci/unlike_before.h"

#include <fmt/format.h>

#include <algorithm>

namespace lossgate::ci {

std::vector<std::string> unlike_before(const History& history, const std::vector<Arm>& arms,
                                       const report::Request& request) {
  std::vector<std::string> said;
  if (history.seed && *history.seed != request.seed) {
    said.push_back(
        fmt::format("begun with seed {}, which the record keeps; from here on cases are "
                    "drawn with seed {}",
                    *history.seed, request.seed));
  }
  std::vector<std::string> left;
  for (const auto& [name, spent] : history.spent) {
    if (std::ranges::find(arms, name, &Arm::name) == arms.end()) left.push_back(name);
  }
  if (!left.empty()) {
    said.push_back(
        fmt::format("asked before and not now: {}; what was found of it stays; another "
                    "--out begins another campaign",
                    fmt::join(left, ", ")));
  }
  return said;
}

}  // namespace lossgate::ci
