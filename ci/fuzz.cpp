// SPDX-License-Identifier: Apache-2.0
#include "ci/fuzz.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "ci/asked_again.h"
#include "ci/begun_record.h"
#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/interruption.h"
#include "ci/live_line.h"
#include "ci/misfits.h"
#include "ci/none_left.h"
#include "ci/out_folder.h"
#include "ci/progress.h"
#include "ci/stored_case.h"
#include "ci/unanswered.h"
#include "ci/unlike_before.h"
#include "ci/waivers.h"
#include "corpora/case_id.h"
#include "corpora/files.h"
#include "corpora/text_codec.h"
#include "report/board.h"
#include "report/faults.h"
#include "report/finding_text.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

/// What an earlier run of the same campaign recorded, of what is not asked now as well; the journal
/// knows of findings that it lost.
void take_up(report::RunRecord& record, const CampaignFolder& folder) {
  const fs::path file = folder.path() / "run.json";
  const report::RunRecord& journal = folder.history().findings;
  std::set<std::string> known;
  if (fs::exists(file)) {
    try {
      report::RunRecord earlier = report::read_record(file);
      earlier.troubles.clear();  // what failed then is tried again
      earlier.mended.clear();    // what the journal says of them is newer
      std::erase_if(earlier.findings, [&](const report::RecordedFinding& finding) {
        return std::ranges::find(journal.mended, finding.fingerprint,
                                 &report::Mended::fingerprint) != journal.mended.end();
      });
      for (const auto& finding : earlier.findings) known.insert(finding.fingerprint);
      merge(record, earlier);
      add_subjects(record, earlier);
    } catch (const report::RecordError& error) {
      fmt::print(stderr, "{}; its counts are lost\n", error.what());
    }
  }
  report::RunRecord told = journal;
  for (report::RecordedFinding& finding : told.findings) {
    // Counted already; the journal may know a plainer case of it.
    if (known.contains(finding.fingerprint)) finding.count = 0;
  }
  merge(record, told);
}

/// Puts the cases of these folders, of losses that are asked, into the corpus.
void add_corpora(const FuzzOptions& options, const Plan& plan, const CampaignFolder& folder) {
  for (const std::string& corpus : options.corpora) {
    for (const fs::path& file : corpora::list_case_files(corpus)) {
      // Dumps become cases, and files of one name in two folders stay two.
      const Case c = read_case(file, plan.selection());
      const fs::path to = folder.path() / "corpus" / c.spec.loss / (corpora::case_id(c) + ".case");
      if (fs::exists(to)) continue;
      corpora::write_file(to, corpora::encode(c, *plan.selection().find_signature(c.spec.loss)));
    }
  }
}

class Teller {
 public:
  Teller(const Budget& budget, const CampaignFolder& folder) : budget_(budget), folder_(folder) {}

  void begin(const Campaign& campaign) {
    const History& history = folder_.history();
    const std::size_t arms = campaign.arms().size();
    fmt::print("{} implementation{}, {}{}\n", arms, arms == 1 ? "" : "s", budget_text(budget_),
               history.begun ? fmt::format("; going on after {}, {} cases, {} findings",
                                           duration_text(history.seconds), campaign.cases(),
                                           history.findings.findings.size())
                             : "");
    if (budget_.spent(campaign.seconds(), campaign.cases())) {
      fmt::print("budget spent: nothing is searched; --budget +8h is 8 hours from now\n");
    }
    if (history.damaged > 0) {
      fmt::print("{}/journal: {} damaged lines skipped\n", folder_.path().string(),
                 history.damaged);
    }
    std::fflush(stdout);
    cases_before_ = campaign.cases();
    seconds_before_ = campaign.seconds();
  }

  void finding(const Campaign& campaign, const report::RecordedFinding& finding) {
    line_.clear();
    ++findings_;
    fmt::print("{} {:>8} cases: {}\n", duration_text(campaign.seconds()), campaign.cases(),
               report::met_line(finding, folder_.path().string()));
    std::fflush(stdout);
  }

  void tick(const Campaign& campaign) {
    disk();
    if (!line_.due()) return;
    const double seconds = campaign.seconds() - seconds_before_;
    const auto cases = static_cast<double>(campaign.cases() - cases_before_);
    line_.show(fmt::format("{} of {}, {} cases, {:.0f} a second, {} kept, {} new findings, {}",
                           duration_text(campaign.seconds()), budget_text(budget_),
                           campaign.cases(), seconds > 0.0 ? cases / seconds : 0.0, campaign.kept(),
                           findings_, campaign.busy_with()));
  }

 private:
  void disk() {
    const bool full = folder_.waiting() > 0;
    if (full == full_) return;
    full_ = full;
    line_.clear();
    fmt::print(stderr, "{}\n",
               full ? fmt::format("{}: {}; the campaign goes on and writes when it can",
                                  folder_.path().string(), folder_.trouble())
                    : folder_.path().string() + ": everything is written again");
  }

  const Budget& budget_;
  const CampaignFolder& folder_;
  LiveLine line_{std::chrono::minutes(1)};
  std::int64_t findings_ = 0, cases_before_ = 0;
  double seconds_before_ = 0.0;
  bool full_ = false;
};

/// The record as it is when the campaign ends now.
report::RunRecord ended(report::RunRecord record, const Campaign& campaign,
                        const FuzzOptions& options) {
  record.seconds = campaign.seconds();
  record.cases_run = record.cases_planned = campaign.cases();
  close_record(record);
  judge(record, options.campaign.policy);
  return record;
}

/// So that a kill leaves a record, too; the journal has what counts.
void snapshot(const fs::path& folder, const report::RunRecord& record) {
  try {
    corpora::write_file(folder / "run.json", report::to_json(record));
  } catch (const fs::filesystem_error&) {  // is told of the journal
  }
}

/// What the budget did not reach. Of what was brought it is a trouble, as in a gate what answered
/// no case is: nothing was shown of it, and nobody should take that for a green.
void tell_never_asked(const FuzzOptions& options, const Plan& plan, const Campaign& campaign,
                      report::RunRecord& record) {
  const std::vector<std::string> names = campaign.never_asked();
  if (names.empty()) return;
  const bool ended_early = interrupted || (options.campaign.first && campaign.found());
  if (!ended_early && !plan.selection().brought.empty()) {
    record.troubles.push_back(fmt::format("never asked: {}", fmt::join(names, ", ")));
    return;
  }
  fmt::print("{} of {} implementations not asked yet: they come first when this campaign goes on\n",
             names.size(), campaign.arms().size());
}

int finish(const FuzzOptions& options, const Plan& plan, const Campaign& campaign,
           CampaignFolder& folder, report::RunRecord record) {
  record.interrupted = interrupted;
  if (!interrupted) add_unanswered(plan, record);
  tell_never_asked(options, plan, campaign, record);
  record = ended(std::move(record), campaign, options);
  record.misfits = misfits(options.campaign.policy, options.plan.filters);
  if (!folder.flush()) {
    throw MachineError(fmt::format("{}: {}; {} findings and kept cases are not written",
                                   options.out, folder.trouble(),
                                   static_cast<std::int64_t>(folder.waiting()) + folder.lost()));
  }
  if (folder.lost() > 0) {
    record.troubles.push_back(fmt::format(
        "{} findings and kept cases are lost: the disk took none for too long", folder.lost()));
  }
  record.campaign = thinned(read_history(folder.path() / "journal").points);
  write_out(options.out, record);
  const bool colour = ::isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR");
  fmt::print("{}", report::board(record, {.colour = colour, .folder = options.out}));
  fmt::print("results: {}/run.json, {}\n", options.out, views_in(options.out));
  if (interrupted) {
    fmt::print("interrupted: the same command goes on from here\n");
    return static_cast<int>(Exit::interrupted);
  }
  return report::exit_status(record);
}

}  // namespace

int run_fuzz(const FuzzOptions& options) {
  tell_interruption_at_start();
  check_out(options.out);
  refuse_record_of_gate(options.out);
  check_environment(options.plan.filters.subjects.empty());
  const Plan plan(options.plan);
  for (const auto& brought : plan.selection().brought) brought->session->rest();
  const std::vector<Arm> arms = dealt(arms_of(plan), options.campaign.shard);
  if (arms.empty()) {
    throw InputError("nothing to search: " + none_left(options.plan.filters, plan.selection()));
  }
  CampaignFolder folder(options.out, plan.options().seed);
  report::RunRecord record = begun_record(plan, options.campaign.policy.fail_on);
  if (const Shard& shard = options.campaign.shard; shard.count > 1) {
    record.request.shard = fmt::format("{}/{}", shard.index, shard.count);
  }
  for (const Arm& arm : arms_of(plan)) {
    if (arm.only) record.request.brought.push_back(arm.name());
  }
  std::erase_if(record.subjects, [&](const report::Subject& subject) {
    return std::ranges::find(arms, subject.loss + "/" + subject.name, &Arm::name) == arms.end();
  });
  for (report::Subject& subject : record.subjects)
    subject.twin.clear();  // it is asked as any other
  for (const std::string& line : unlike_before(folder.history(), arms, record.request)) {
    fmt::print("{}: {}\n", options.out, line);
  }
  record.request.seed = folder.history().seed.value_or(record.request.seed);
  take_up(record, folder);
  add_corpora(options, plan, folder);
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  if (folder.history().begun) ask_again(plan, options.campaign, folder, record, interrupted);
  Campaign campaign(plan, options.campaign, folder, record);
  record.request.budget = budget_text(campaign.budget());
  Teller teller(campaign.budget(), folder);
  teller.begin(campaign);
  campaign.on_finding = [&](const report::RecordedFinding& finding) {
    teller.finding(campaign, finding);
  };
  auto written = std::chrono::steady_clock::now();
  campaign.on_tick = [&](const Campaign&) {
    teller.tick(campaign);
    const auto now = std::chrono::steady_clock::now();
    if (now - written < std::chrono::seconds(1)) return;
    report::RunRecord so_far = ended(record, campaign, options);
    so_far.interrupted = true;  // as long as nobody says that it ended
    snapshot(options.out, so_far);
    written = now;
  };
  campaign.run(interrupted);
  return finish(options, plan, campaign, folder, std::move(record));
}

}  // namespace lossgate::ci
