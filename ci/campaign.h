// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ci/arm.h"
#include "ci/budget.h"
#include "ci/campaign_folder.h"
#include "ci/child.h"
#include "ci/plan.h"
#include "ci/stint.h"
#include "ci/under_way.h"
#include "ci/waivers.h"
#include "fuzz/schedule.h"
#include "report/run_record.h"

namespace lossgate::ci {

struct CampaignOptions {
  Budget budget = {.seconds = 600.0, .cases = 0};
  int workers = 1;
  double timeout_s = 60.0;         ///< for one call
  std::int64_t memory_mib = 4096;  ///< for one worker; 0: any
  Shard shard;
  bool guided = true;
  Policy policy;       ///< which findings are red
  bool first = false;  ///< stop at the first of them
};

/// Searches every implementation of the plan until the budget is spent, each in a process of its
/// own: all of them for a moment, and then which of them next is what still pays. Whatever is found
/// or kept goes to the folder at once.
///
/// Turns are of seconds where the budget is, and of cases where it is in cases: with one worker,
/// which cases are asked then follows from the plan, the seed and the budget, where nothing hangs
/// and nobody interrupts.
class Campaign {
 public:
  Campaign(const Plan& plan, const CampaignOptions& options, CampaignFolder& folder,
           report::RunRecord& record);
  ~Campaign();

  const std::vector<Arm>& arms() const { return arms_; }
  const Budget& budget() const { return options_.budget; }  ///< from the beginning on

  /// Hears of each finding that is new, and of how far the campaign is a few times a second.
  std::function<void(const report::RecordedFinding&)> on_finding;
  std::function<void(const Campaign&)> on_tick;

  /// What ends it early, on the machine's side, is among the record's troubles.
  void run(const std::atomic<bool>& interrupted);

  double seconds() const;  ///< by the clock on the wall, before an interruption as well
  std::int64_t cases() const { return cases_; }
  std::int64_t kept() const { return kept_; }
  bool found() const { return found_; }  ///< something new that is red
  std::string busy_with() const;         ///< "grpo/torch, jsd/torch"
  /// Those that no case was put to, though nothing stood in the way: "grpo/torch".
  std::vector<std::string> never_asked() const;

 private:
  struct Worker;
  using Clock = std::chrono::steady_clock;

  void search(const std::atomic<bool>& interrupted);
  void start(Worker& worker, std::size_t arm);
  void listen(Worker& worker);
  void hear(Worker& worker, const std::string& line);
  void take_part(Worker& worker, report::RunRecord part);
  bool take_met(Worker& worker);
  void take_kept(Worker& worker, const Kept& kept);
  void failed(Worker& worker, const std::string& property, const std::string& cause);
  void look_after(Worker& worker);
  void go_on(Worker& worker);
  void hear_out(const std::atomic<bool>& interrupted);
  void hear_all(Worker& worker);
  static bool is_explaining(const Worker& worker);
  void settle(Worker& worker);
  void wait();
  void tell_spent(Worker& worker);
  void save();
  std::int64_t resident_mib() const;
  std::size_t next(const Worker& worker) const;
  bool waits(std::size_t arm) const;
  std::int64_t waiting() const;
  bool is_over(const Worker& worker) const;
  std::int64_t share_of_cases(std::int64_t turns) const;
  std::int64_t cases_for(const Worker& worker) const;
  bool is_news(const report::RecordedFinding& finding);
  void retire(Worker& worker, std::string_view why);
  bool any_left() const;
  bool anything_left() const;

  const Plan& plan_;
  CampaignOptions options_;
  CampaignFolder& folder_;
  report::RunRecord& record_;
  std::vector<Arm> arms_;
  std::vector<std::set<fuzz::Feature>> seen_;  ///< by arm
  std::vector<std::int64_t> asked_;            ///< cases by arm
  std::vector<std::int64_t> long_from_;        ///< by arm: Stint::long_from
  std::vector<bool> retired_;                  ///< by arm: those that cannot be asked
  Shown shown_;
  fuzz::Schedule schedule_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::int64_t cases_ = 0, kept_ = 0, starts_ = 0;
  FailedStarts failed_starts_;
  bool found_ = false;
  double seconds_before_ = 0.0;
  Clock::time_point start_ = Clock::now(), saved_ = start_;
};

}  // namespace lossgate::ci
