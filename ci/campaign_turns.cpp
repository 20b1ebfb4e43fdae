// SPDX-License-Identifier: Apache-2.0
// Which search a process of a campaign turns to, and for how long.
#include <algorithm>

#include "ci/campaign_worker.h"

namespace lossgate::ci {
namespace {

/// A first turn is short, so that a small budget reaches everyone, and over before long cases
/// begin.
constexpr double kSecondsOfFirstTurn = 0.75;
constexpr std::int64_t kCasesOfFirstTurn = 64;
static_assert(kCasesOfFirstTurn < kWithLongCases);

/// A later one of a budget in cases: about as long as it would be by the clock, for most searches.
constexpr std::int64_t kCasesOfTurn = 128;

}  // namespace

/// Whether nobody has asked it yet, nor is about to.
bool Campaign::waits(std::size_t arm) const {
  return !retired_[arm] && asked_[arm] == 0 &&
         std::ranges::none_of(
             workers_, [&](const auto& worker) { return worker->child && worker->arm == arm; });
}

std::int64_t Campaign::waiting() const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < arms_.size(); ++i) count += waits(i);
  return count;
}

/// The search that comes next for this worker: its own one counts as free.
std::size_t Campaign::next(const Worker& worker) const {
  std::vector<bool> taken = retired_;
  for (const auto& other : workers_) {
    if (other.get() != &worker && other->child) taken[other->arm] = true;
  }
  // None has a second turn before all had their first, in an earlier run of the campaign say.
  std::vector<bool> later = taken;
  for (std::size_t i = 0; i < arms_.size(); ++i) later[i] = later[i] || asked_[i] > 0;
  if (std::ranges::find(later, false) != later.end()) return schedule_.next(later);
  const bool all = std::ranges::find(taken, false) == taken.end();
  return schedule_.next(all ? retired_ : taken);
}

bool Campaign::any_left() const { return std::ranges::find(retired_, false) != retired_.end(); }

/// To ask, and of cases to ask about.
bool Campaign::anything_left() const {
  return any_left() && (options_.budget.cases == 0 || share_of_cases(1) > 0);
}

/// Whether it had its time. Who has not answered yet is not called away: its case would be lost,
/// and the next time as well. A budget in cases has turns of cases, which the worker counts.
bool Campaign::is_over(const Worker& worker) const {
  if (asked_[worker.arm] == 0 || options_.budget.cases > 0) return false;
  return since(worker.stretch_began) >= (worker.first ? kSecondsOfFirstTurn : worker.stretch);
}

/// What is left of the budget and not under way, dealt to so many.
std::int64_t Campaign::share_of_cases(std::int64_t turns) const {
  std::int64_t left = options_.budget.cases - cases_;
  for (const auto& worker : workers_) left -= worker->child ? worker->cases_left : 0;
  return (left + turns - 1) / turns;
}

/// What its turn may ask; 0: any.
std::int64_t Campaign::cases_for(const Worker& worker) const {
  const bool any = options_.budget.cases == 0;
  const std::int64_t workers = options_.workers;
  if (!worker.first) return any ? 0 : std::min(kCasesOfTurn, share_of_cases(workers));
  if (any) return kCasesOfFirstTurn;
  return std::min(kCasesOfFirstTurn, share_of_cases(std::max(workers, waiting())));
}

std::vector<std::string> Campaign::never_asked() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (asked_[i] == 0 && !retired_[i]) names.push_back(arms_[i].name());
  }
  return names;
}

}  // namespace lossgate::ci
