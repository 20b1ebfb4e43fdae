// SPDX-License-Identifier: Apache-2.0
#include "ci/drawn_ties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "ci/asked_under.h"
#include "ci/candidates.h"
#include "ci/config_text.h"
#include "ci/errors.h"
#include "ci/variant.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// Beyond so many the rest is only named.
constexpr std::size_t kTried = 4;
constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

/// How many verdicts of a trial are violations, where the file says that it is this.
std::size_t violations(const IdentifyOptions& options, const Recognition& match,
                       const Hosts& hosts) {
  const SubjectFile file{.text = config_text(options, match, {}, {}),
                         .name = options.out,
                         .folder = fs::absolute(options.out).parent_path().string(),
                         .hosts = hosts};
  try {
    const auto brought = bring(file, {}).front();
    Progress progress(kTrials, 0, "cases that may tell what it is");
    const Failures found = failures({*brought, brought->subject}, brought->dtypes.front(), progress,
                                    kTrialSeed, Breadth::of_the_case);
    progress.finish();
    std::size_t count = 0;
    for (const Failure& failure : found.all) count += failure.cases.size();
    return count;
  } catch (const ImplementationThrew&) {  // a gate shows it
  } catch (const InputError&) {           // it cannot be declared so
  } catch (const impl::SubjectError&) {
  }
  return kUnknown;
}

Recognition with(Recognition match, const OptionValues& values) {
  for (const auto& [option, value] : values) {
    set_value(match.likeness.candidate.options, option, value);
    set_value(match.subject.options, option, value);
  }
  return match;
}

/// What it has instead of these.
OptionValues of_plainest(const Recognition& match, const OptionValues& values) {
  OptionValues plain;
  for (const auto& [option, value] : values) {
    const OptionValue* has = find_value(match.likeness.candidate.options, option);
    if (has) plain.emplace_back(option, *has);
  }
  return plain;
}

void name_equals(const std::vector<std::string>& equals, Recognition& match) {
  if (equals.empty()) return;
  constexpr std::size_t kNamed = 3;
  const auto named = std::span(equals).first(std::min(kNamed, equals.size()));
  const std::string more =
      equals.size() > kNamed ? fmt::format(" or {} more", equals.size() - kNamed) : "";
  match.remarks.push_back(
      fmt::format("equal on these cases with {}{}, too: the plainest is taken, so write what the "
                  "function has",
                  fmt::join(named, " or "), more));
}

}  // namespace

Recognition settled_by_drawn_cases(const IdentifyOptions& options, Recognition match,
                                   const Hosts& hosts) {
  if (match.equals.empty()) return match;
  const auto others = std::exchange(match.equals, {});
  const std::size_t plainly = violations(options, match, hosts);
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < others.size(); ++i) {
    counted.push_back(i < kTried ? violations(options, with(match, others[i]), hosts) : plainly);
  }
  const auto least = std::ranges::min_element(counted);
  const OptionValues* taken =
      *least < plainly ? &others[static_cast<std::size_t>(least - counted.begin())] : nullptr;
  Recognition settled = taken ? with(match, *taken) : match;
  if (taken) {
    settled.remarks.push_back(
        fmt::format("{}, not {}: the same on plain cases, told apart by {} such as a gate draws",
                    options_text(*taken, " ", false),
                    options_text(of_plainest(match, *taken), " ", false), kTrials));
  }
  std::vector<std::string> equals;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (&others[i] == taken || counted[i] != std::min(*least, plainly)) continue;
    equals.push_back(options_text(others[i], " ", false));
  }
  name_equals(equals, settled);
  return settled;
}

}  // namespace lossgate::ci
