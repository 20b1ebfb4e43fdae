// SPDX-License-Identifier: Apache-2.0
// How long a case must be: what ends at a block, a grid of blocks or a format of indices.
#include <string>
#include <utility>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// What is shorter has no end of its own: probes on short cases explain it.
constexpr std::int64_t kShort = 32;

}  // namespace

/// Plain numbers along one axis, as long as the given case and as short as others are; where only
/// the long ones are wrong, the length from which they are.
Opinion probe_length(Suspect& suspect) {
  for (const Axis axis : kAllAxes) {
    const std::int64_t given = suspect.given().shape[axis];
    if (given <= kShort || suspect.signature().pinned_extent(axis)) continue;
    const auto at = [&](std::int64_t extent) {
      return suspect.read(suspect.plain_case({.length = {{axis, extent}}}));
    };
    std::int64_t right = kShort, wrong = given;
    if (!is_right(at(right))) continue;
    // Blocks that are full, and counts that a narrow format holds, are right now and then.
    if (is_right(at(wrong))) wrong -= 1;
    auto shortest = at(wrong);  // of the answers that are wrong
    if (wrong == right || !is_wrong(shortest)) continue;
    while (wrong - right > 1) {
      const std::int64_t middle = right + (wrong - right) / 2;
      auto reading = at(middle);
      if (!reading) return std::nullopt;
      const bool is_one = is_wrong(reading);
      (is_one ? wrong : right) = middle;
      if (is_one) shortest.emplace(std::move(*reading));
    }
    if (shortest->finite() && is_erratic(suspect, *shortest)) {
      return Diagnosis{"narrow arithmetic", 0.9,
                       "roundings add up: from " + std::to_string(wrong) + " " +
                           std::string(name(axis)) + " on they are beyond the bound"};
    }
    const std::string what = std::string(name(axis)) + " is ";
    const std::string found = "plain numbers are right where " + what + std::to_string(right) +
                              ", and wrong where it is " + std::to_string(wrong);
    if (wrong < given && is_right(at(wrong + 1))) {
      return Diagnosis{"wrong beyond a length", 0.7,
                       found +
                           ", but not where it is one more: it is this length, or what lies at "
                           "its blocks' ends"};
    }
    return Diagnosis{"wrong beyond a length", 0.95, found};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
