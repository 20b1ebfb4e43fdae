// SPDX-License-Identifier: Apache-2.0
// How long a case must be: what ends at a block, a grid of blocks or a format of indices. And how
// short: what treats an axis of one unlike others.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "properties/causes.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// What is shorter has no end of its own: probes on short cases explain it.
constexpr std::int64_t kShort = 32;

/// Whether what is asked has one along the axis: the given case or, where that is right, a part of
/// its split.
bool has_one(Suspect& suspect, Axis axis) {
  if (suspect.given().shape[axis] == 1) return true;
  const auto is_one = [](const Split::Part& part) { return part.sequences.size() == 1; };
  return axis == Axis::sequences && std::ranges::any_of(suspect.split().parts, is_one) &&
         is_right(suspect.as_given());
}

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
      return Diagnosis{std::string(kWrongBeyondALength), 0.7,
                       found +
                           ", but not where it is one more: it is this length, or what lies at "
                           "its blocks' ends"};
    }
    return Diagnosis{std::string(kWrongBeyondALength), 0.95, found};
  }
  return std::nullopt;
}

/// The plain case, and with one of an axis of which what is asked has one, or with one of all such
/// axes, where it is right with two.
Opinion probe_single(Suspect& suspect) {
  const auto several = suspect.plain_case({.padding = false});
  if (!several) return std::nullopt;
  std::vector<std::vector<Axis>> tried;
  std::vector<Axis> all;
  for (const Axis axis : kAllAxes) {
    const bool may_be_two = several->shape[axis] > 1 && !suspect.signature().pinned_extent(axis);
    if (!may_be_two || !has_one(suspect, axis)) continue;
    tried.push_back({axis});
    all.push_back(axis);
  }
  if (tried.empty() || !is_right(suspect.read(several))) return std::nullopt;
  if (all.size() > 1) tried.push_back(all);
  for (const std::vector<Axis>& axes : tried) {
    const auto read = [&](std::int64_t extent) {
      return suspect.read_if_made(
          suspect.plain_case({.padding = false, .few = axes, .at_most = extent}));
    };
    const auto one = read(1);
    // Of one the bound is narrower, too.
    if (!is_wrong(one) || (one->finite() && is_erratic(suspect, *one))) continue;
    if (!is_right(read(2))) continue;
    std::string names;
    for (const Axis axis : axes) names += (names.empty() ? "" : " and ") + std::string(name(axis));
    const std::string are = axes.size() > 1 ? " are " : " is ";
    return Diagnosis{"single one mistaken", 0.85,
                     "plain numbers are right where " + names + are + "2, and wrong where " +
                         (axes.size() > 1 ? "they are 1" : "it is 1")};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
