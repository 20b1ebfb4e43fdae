// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ci/asked_under.h"
#include "ci/brought.h"

namespace lossgate::ci {

inline constexpr std::string_view kSubjectTable = "[[subject]]";
inline constexpr std::string_view kContractTable = "[subject.contract]";

/// A line of a lossgate.toml with which more is asked, and what of that the function keeps.
struct Promise {
  std::string table = std::string(kContractTable);  ///< where the line stands: `[[subject]]`
  std::string line = {};                            ///< `infinite_valid = true`
  std::string asked = {};                           ///< what is asked then
  bool of_trainer = false;  ///< it says what the trainer does: no function promises that
  std::string beside = {};  ///< a line that stands with it: `empty = "nan"`
  std::string needs = {};   ///< a line of the contract without which nobody may count on it
  std::string price = {};   ///< what is true of the trainer then
  /// It is asked that often before it is written down: what fails in one case of a hundred would be
  /// red some night.
  std::uint64_t times = 4;
  int cases = 0;
  std::vector<std::string> failing =
      {};  ///< "finite_backward (3 cases: ...)", not without the line
  bool kept() const { return cases > 0 && failing.empty(); }
};

/// Asks the subject under contracts that promise its callers one thing more than it declares, and
/// where that is fields in bf16 and kept, in which arithmetic it takes those, and which in f32
/// beside them: each on four times
/// the cases of which try_contract asks it under its own, as long as it is kept; of the last three
/// quarters only what it makes of each case (of autocast, whose rounding shows at once, none). No
/// cases where it answers none of the first. `failing` is what fails on a trial's cases as it is
/// declared. Throws ImplementationThrew, SubjectError.
std::vector<Promise> try_promises(const Brought& brought, const Failures& failing);

}  // namespace lossgate::ci
