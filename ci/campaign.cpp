// SPDX-License-Identifier: Apache-2.0
#include "ci/campaign.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "ci/campaign_worker.h"
#include "ci/errors.h"
#include "ci/protocol.h"
#include "ci/resident.h"
#include "fuzz/hash.h"

namespace lossgate::ci {
namespace {

/// In seconds, and as a share of the campaign: what a kill costs. A journal that is told at the
/// same rate for days is gigabytes, which nothing reads any more.
constexpr double kSaveEvery = 1.0, kShareBetweenSaves = 1.0 / 3600;

/// What a case counts for where the budget is in cases, so that no clock says who is next.
constexpr double kSecondsOfCase = 1.0 / 64;

/// What a finding is worth beside a case that shows something new.
constexpr double kWorthOfFinding = 20.0;

}  // namespace

Campaign::Campaign(const Plan& plan, const CampaignOptions& options, CampaignFolder& folder,
                   report::RunRecord& record)
    : plan_(plan),
      options_(options),
      folder_(folder),
      record_(record),
      arms_(dealt(arms_of(plan), options.shard)),
      seen_(arms_.size()),
      asked_(arms_.size()),
      long_from_(arms_.size()),
      retired_(arms_.size(), false),
      schedule_(arms_.size()) {
  const History& history = folder.history();
  seconds_before_ = history.seconds;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    const auto spent = history.spent.find(arms_[i].name());
    if (spent == history.spent.end()) continue;
    seen_[i] = spent->second.seen;
    cases_ += asked_[i] = spent->second.cases;
    long_from_[i] = spent->second.long_from;
  }
  options_.budget = options.budget.after(seconds_before_, cases_);
  for (const report::RecordedFinding& finding : history.findings.findings) {
    shown_[finding.fingerprint] =
        properties::parse_grade(finding.grade).value_or(properties::Grade::rare);
  }
}

Campaign::~Campaign() = default;

void Campaign::run(const std::atomic<bool>& interrupted) {
  start_ = saved_ = Clock::now();
  for (int i = 0; i < options_.workers; ++i) workers_.push_back(std::make_unique<Worker>());
  try {
    search(interrupted);
  } catch (const MachineError& error) {
    record_.troubles.emplace_back(error.what());
  }
  save();
  try {
    hear_out(interrupted);
  } catch (const MachineError& error) {
    record_.troubles.emplace_back(error.what());
  }
  for (auto& worker : workers_) settle(*worker);
  save();
  workers_.clear();
}

void Campaign::search(const std::atomic<bool>& interrupted) {
  while (!interrupted && any_left() && !(options_.first && found_) &&
         !options_.budget.spent(seconds(), cases_)) {
    for (auto& worker : workers_) look_after(*worker);
    wait();
    if (since(saved_) >= std::max(kSaveEvery, kShareBetweenSaves * seconds())) save();
    if (on_tick) on_tick(*this);
  }
}

double Campaign::seconds() const { return seconds_before_ + since(start_); }

std::string Campaign::busy_with() const {
  std::string names;
  for (const auto& worker : workers_) {
    if (worker->child) names += (names.empty() ? "" : ", ") + arms_[worker->arm].name();
  }
  return names;
}

void Campaign::start(Worker& worker, std::size_t arm) {
  const std::string& loss = arms_[arm].loss->signature.id;
  tell_spent(worker);
  worker.arm = arm;
  worker.first = waits(arm) && waiting() > 1;
  worker.ready = worker.turn_over = false;
  worker.long_case.reset();
  worker.met.reset();
  // One of those that search an arm asks the long cases: they are drawn alike in all.
  worker.asks_long = std::ranges::none_of(workers_, [&](const auto& other) {
    return other.get() != &worker && other->child && other->arm == arm && other->asks_long;
  });
  worker.started = worker.stretch_began = Clock::now();
  worker.under_way.end();
  worker.under_way.explain(false);
  worker.cases_left = cases_for(worker);
  worker.child = std::make_unique<Child>("fuzz-worker", worker.under_way.descriptor());
  // Another seed for every start, after an interruption as well.
  const std::uint64_t seed = fuzz::mix(plan_.options().seed ^ fuzz::hash_of(arms_[arm].name()) ^
                                       fuzz::mix(static_cast<std::uint64_t>(++starts_ + cases_)) ^
                                       static_cast<std::uint64_t>(options_.shard.index));
  const Stint stint{.loss = loss,
                    .implementation = arms_[arm].declared->name,
                    .seed = seed,
                    .cases = worker.cases_left,
                    .by_cases = options_.budget.cases > 0,
                    .asked = asked_[arm],
                    .long_from = worker.asks_long ? long_from_[arm] : -1,
                    .guided = options_.guided,
                    .memory_mib = options_.memory_mib,
                    .corpus = folder_.corpus_of(loss, seed),
                    .seen = {seen_[arm].begin(), seen_[arm].end()},
                    .shown = shown_,
                    .again = {}};
  worker.child->write(encode(plan_.options()));
  worker.child->write(encode(stint));
}

/// Starts a worker that has none, ends a stretch of time that is over and what hangs.
void Campaign::look_after(Worker& worker) {
  if (!worker.child) return anything_left() ? start(worker, next(worker)) : void();
  if (worker.turn_over) return go_on(worker);
  const double call = patience_with(plan_.selection(), options_.timeout_s);
  const double patience = worker.ready ? call : std::max(call, kSecondsToLoad);
  const double silent =
      worker.ready ? worker.under_way.since_sign_of_life().count() : since(worker.started);
  if (silent > patience) {
    worker.child->end();
    return failed(worker, "does_not_hang", fmt::format("no answer within {} s", patience));
  }
  if (!worker.ready || worker.long_case || !is_over(worker)) return;
  if (is_explaining(worker)) return;
  hear_all(worker);
  if (!worker.child || worker.long_case || is_explaining(worker)) return;
  settle(worker);
  if (const std::size_t arm = next(worker); arm != worker.arm) {
    worker.child.reset();
    start(worker, arm);
  }
}

/// After a turn of so many cases: the same process goes on where the same search comes next.
void Campaign::go_on(Worker& worker) {
  settle(worker);
  if (!anything_left()) return worker.child.reset();
  if (const std::size_t arm = next(worker); arm != worker.arm) {
    worker.child.reset();
    return start(worker, arm);
  }
  worker.turn_over = false;
  worker.cases_left = cases_for(worker);
  worker.child->write(std::to_string(worker.cases_left) + "\n");
}

/// Credits a stretch of time to its search; a first turn is none, and leaves it one to come.
void Campaign::settle(Worker& worker) {
  if (!worker.child || !worker.ready) return;
  const double cases = std::exchange(worker.cases, 0.0), found = std::exchange(worker.found, 0.0);
  if (!std::exchange(worker.first, false)) {
    const bool by_cases = options_.budget.cases > 0;
    const double seconds = by_cases ? cases * kSecondsOfCase : since(worker.stretch_began);
    schedule_.credit(worker.arm, seconds, cases, found);
  }
  worker.stretch_began = Clock::now();
}

/// The implementation cannot be asked, by no fault of its own; the others go on.
void Campaign::retire(Worker& worker, std::string_view why) {
  const std::string name = arms_[worker.arm].name();
  if (!retired_[worker.arm]) record_.troubles.push_back(fmt::format("{}: {}", name, why));
  retired_[worker.arm] = true;
  take_met(worker);
  settle(worker);
  worker.child.reset();
}

void Campaign::take_part(Worker& worker, report::RunRecord part) {
  cases_ += part.cases_run;
  asked_[worker.arm] += part.cases_run;
  worker.cases_left -= part.cases_run;
  worker.unsaved_cases += part.cases_run;
  worker.cases += static_cast<double>(part.cases_run);
  for (report::RecordedFinding& finding : part.findings) {
    if (!is_news(finding)) {  // another was faster, or plainer: there is no file of this one
      finding.case_text.clear();
      finding.case_id.clear();
    }
    if (!finding.case_text.empty()) worker.found += kWorthOfFinding;
  }
  folder_.found(part);
  for (report::RecordedFinding& finding : part.findings) {
    if (finding.case_text.empty()) continue;
    judge(finding, options_.policy);
    found_ = found_ || finding.red();
    if (on_finding) on_finding(finding);
    finding.case_text.clear();
  }
  merge(record_, part);
}

/// Whether nothing like it was found, or nothing as ordinary.
bool Campaign::is_news(const report::RecordedFinding& finding) {
  const auto grade = properties::parse_grade(finding.grade).value_or(properties::Grade::rare);
  const auto [known, fresh] = shown_.try_emplace(finding.fingerprint, grade);
  return fresh || grade < std::exchange(known->second, std::min(known->second, grade));
}

void Campaign::take_kept(Worker& worker, const Kept& kept) {
  const Arm& arm = arms_[worker.arm];
  const Case c = decode_case(arm, kept.text);
  seen_[worker.arm].insert(kept.features.begin(), kept.features.end());
  folder_.keep(c, arm.loss->signature, arm.name(), kept.features);
  // Each process sees edges of code as new ones.
  if (!kept.features.empty()) worker.found += 1.0;
  kept_ += 1;
}

/// Enters what a process ended on, as a finding with its case; it is started again elsewhere.
void Campaign::failed(Worker& worker, const std::string& property, const std::string& cause) {
  worker.child.reset();
  if (!worker.under_way.asking()) {
    return failed_starts_.failed(cause);
  }
  const bool is_counted = take_met(worker);
  const Arm& arm = arms_[worker.arm];
  if (worker.long_case) folder_.asked_long(arm.name(), *worker.long_case + 1);
  if (arm.only) return retire(worker, kOwnProcess + cause);
  const PlannedCase planned = worker.long_case
                                  ? long_case(plan_, arm, *worker.long_case).value()
                                  : planned_for(arm, decode_case(arm, worker.under_way.text()));
  report::RunRecord part;
  part.cases_run = is_counted ? 0 : 1;
  add_failure(part, planned, cases_, *arm.declared, property, cause);
  take_part(worker, std::move(part));
}

/// Of this process and its workers.
std::int64_t Campaign::resident_mib() const {
  std::int64_t bytes = resident_bytes(::getpid());
  for (const auto& worker : workers_) {
    if (worker->child) bytes += resident_bytes(worker->child->pid());
  }
  return bytes >> 20;
}

/// What the worker has spent on its search since the last time.
void Campaign::tell_spent(Worker& worker) {
  folder_.spent(arms_[worker.arm].name(), std::exchange(worker.unsaved_cases, 0),
                since(worker.unsaved_since));
  worker.unsaved_since = Clock::now();
}

/// Tells the journal what was spent, and leaves a record that shows the campaign so far.
void Campaign::save() {
  for (auto& worker : workers_) tell_spent(*worker);
  folder_.elapsed(since(saved_), resident_mib());
  saved_ = Clock::now();
}

}  // namespace lossgate::ci
