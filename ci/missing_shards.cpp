// SPDX-License-Identifier: Apache-2.0
#include "ci/missing_shards.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "ci/budget.h"

namespace lossgate::ci {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

std::vector<std::string> missing_shards(const std::vector<report::RunRecord>& parts) {
  std::map<std::int64_t, std::set<std::int64_t>> by_count;
  for (const report::RunRecord& part : parts) {
    if (part.request.shard.empty()) continue;
    const Shard shard = parse_shard(part.request.shard);
    by_count[shard.count].insert(shard.index);
  }
  std::vector<std::string> troubles;
  for (const auto& [count, there] : by_count) {
    const std::int64_t missing = count - std::ssize(there);
    std::vector<std::string> named;
    for (std::int64_t i = 1; i <= count && named.size() < kMostNamed; ++i) {
      if (!there.contains(i)) named.push_back(fmt::format("{}/{}", i, count));
    }
    if (missing == 0) continue;
    troubles.push_back(fmt::format("{} of {} shards missing: {}{}", missing, count,
                                   fmt::join(named, ", "),
                                   missing > std::ssize(named) ? ", ..." : ""));
  }
  return troubles;
}

}  // namespace lossgate::ci
