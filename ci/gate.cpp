// SPDX-License-Identifier: Apache-2.0
#include "ci/gate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ci/arithmetic_trial.h"
#include "ci/begun_record.h"
#include "ci/devices.h"
#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/interruption.h"
#include "ci/misfits.h"
#include "ci/none_left.h"
#include "ci/out_folder.h"
#include "ci/preload.h"
#include "ci/progress.h"
#include "ci/unanswered.h"
#include "ci/variant.h"
#include "ci/waivers.h"
#include "properties/causes.h"
#include "properties/diagnosis.h"
#include "report/board.h"
#include "report/faults.h"
#include "report/finding_text.h"

namespace lossgate::ci {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void run(const Plan& plan, const GateOptions& options, std::unique_ptr<Child> first,
         report::RunRecord& record) {
  std::vector<Task> tasks = tasks_of(plan);
  const auto variants =
      std::ranges::count_if(tasks, [](const Task& t) { return !t.variant.empty(); });
  Progress progress(plan.size(), variants);
  const auto tick = [&](const Task* done, std::int64_t findings) {
    if (done && done->variant.empty()) progress.add_cases(done->end - done->begin);
    if (done && !done->variant.empty()) progress.add_variant();
    progress.looks_into(findings);
    progress.show();
  };
  try {
    run_tasks(
        plan, std::move(tasks), options.pool,
        [&](const report::RunRecord& part) { merge(record, part); }, tick, interrupted,
        std::move(first));
  } catch (const MachineError& error) {
    record.troubles.emplace_back(error.what());
  }
  progress.finish();
  if (!interrupted) add_unanswered(plan, record);
}

/// Of a command that lies by itself.
constexpr const char* kNothingStored =
    "there are no 'regressions' and 'corpora/seeds' here or above the command, and no --corpus";

/// A green must not be taken for more than was asked.
void tell_what_was_left_out(const Plan& plan) {
  if (plan.options().corpora.empty()) fmt::print("no stored case was asked: {}\n", kNothingStored);
  if (plan.selection().brought.empty() || plan.without_long_cases().empty()) return;
  fmt::print("no case of {} was as long as production's: some are where {} or more are drawn\n",
             fmt::join(plan.without_long_cases(), ", "), kWithLongCases);
}

/// What a subject was found to compute otherwise.
struct Disputed {
  std::map<Dtype, std::vector<Case>> cases;  ///< by their formats
  bool cancels = false;  ///< an experiment is sure of a form that no order of a sum makes better
};

/// Of findings that are alike one case is kept, and the worst case of all. None where an experiment
/// is sure that only the length of an axis matters: no order of a sum explains that, but a bound as
/// wide as that of the worst order hides it.
Disputed disputed(const Plan& plan, const report::RunRecord& record, const Brought& brought) {
  constexpr const char* kProperty = "reference_agreement";
  const std::string& name = brought.implementation.name;
  Disputed found;
  std::set<std::int64_t> ordinals;
  for (const report::RecordedFinding& finding : record.findings) {
    if (finding.implementation != name || finding.property != kProperty) continue;
    if (properties::gives_no_result(finding.cause)) continue;  // no arithmetic explains that
    const bool sure = finding.confidence >= properties::kSure;
    if (sure && finding.cause == properties::kWrongBeyondALength) return {};
    found.cancels |= sure && finding.cause == "cancellation";
    ordinals.insert(finding.ordinal);
  }
  if (ordinals.empty()) return found;
  for (const report::Cell& cell : record.cells) {
    if (cell.implementation != name || cell.property != kProperty) continue;
    if (cell.worst_ratio > reference::kThreshold) ordinals.insert(cell.worst_ordinal);
  }
  for (const std::int64_t ordinal : ordinals) {
    PlannedCase planned = plan.at(ordinal);
    found.cases[planned.dtype].push_back(std::move(planned.c));
  }
  return found;
}

/// What explains all that was found of one format.
std::optional<Proposal> proposal_of(const Brought& brought, const ArithmeticTrial& trial,
                                    Disputed& disputed) {
  const std::vector<Case>& cases = disputed.cases[trial.dtype];
  if (trial.fits()) {
    return disputed.cancels ? std::nullopt : try_concession(brought, trial.dtype, cases);
  }
  const auto& declared = trial.declaration;
  if (declared && !explains(brought, trial.dtype, cases, *declared)) return std::nullopt;
  return trial.proposal;
}

/// Many findings may have one reason: an arithmetic that is not what a subject declares.
void advise(const Plan& plan, const report::RunRecord& record) {
  for (const auto& brought : plan.selection().brought) {
    Disputed found = disputed(plan, record, *brought);
    if (found.cases.empty()) continue;
    try {
      for (const ArithmeticTrial& trial : try_arithmetic(*brought)) {
        const auto proposal = proposal_of(*brought, trial, found);
        if (!proposal) continue;
        fmt::print("advice: {} with {} fields fits {}, right only if {}\n",
                   brought->implementation.name, name(trial.dtype), proposal->line,
                   proposal->right);
      }
    } catch (const ImplementationThrew&) {  // which is a finding, too
    } catch (const impl::SubjectError&) {
    }
  }
}

/// A folder of regressions that nobody is asked any more must not look as if they held.
void check_corpora(const Plan& plan) {
  for (const std::string& folder : plan.idle_corpora()) {
    std::vector<std::string> lines;
    for (const report::UnfitCases& unfit : plan.unfit()) {
      if (unfit.corpus == corpus_name(folder)) lines.push_back(report::unfit_line(unfit));
    }
    throw InputError(
        fmt::format("--corpus {} has nothing to ask: {}", folder, fmt::join(lines, "; ")));
  }
  if (plan.size() > 0) return;
  const PlanOptions& options = plan.options();
  if (options.cases > 0) {
    throw InputError("no case to run: " + none_left(options.filters, plan.selection()));
  }
  throw InputError(
      fmt::format("no case to run: --cases 0 draws none, and {}; --cases 1 asks something at least",
                  options.corpora.empty() ? kNothingStored
                                          : fmt::format("no case of what is asked is stored in {}",
                                                        fmt::join(options.corpora, ", "))));
}

bool on_terminal() { return ::isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR"); }

}  // namespace

int run_gate(const GateOptions& options) {
  tell_interruption_at_start();
  const Policy policy = read_policy(options.fail_on, options.waivers, options.baseline);
  check_environment(options.plan.filters.subjects.empty());
  check_out(options.out);
  if (holds_campaign(options.out)) {
    throw InputError(options.out + " holds a campaign, whose findings this run would replace: " +
                     "name another folder with --out");
  }
  PlanOptions planned = options.plan;
  auto first = options.pool.jobs > 0 ? worker_that_loads(planned) : nullptr;
  const Plan plan(planned);
  check_corpora(plan);
  for (const reference::Loss* loss : plan.selection().unasked) {
    fmt::print(stderr, "no implementation of {}: its cases are left out\n", loss->signature.id);
  }
  if (options.pool.jobs > 0) {  // the workers have processes of their own
    for (const auto& brought : plan.selection().brought) brought->session->rest();
  }
  if (holds_findings_of(options.out, options.plan.corpora)) {
    throw InputError(
        fmt::format("--corpus holds the cases in {}/findings, which this run replaces: "
                    "name another folder with --out, or copy them",
                    options.out));
  }
  prepare_out(options.out);
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });

  const auto start = std::chrono::steady_clock::now();
  report::RunRecord record = begun_record(plan, options.fail_on);
  run(plan, options, std::move(first), record);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  record.interrupted = interrupted;
  close_record(record);
  compare_devices(record);
  judge(record, policy);
  record.misfits = misfits(policy, options.plan.filters);
  write_out(options.out, record);
  // All is written: who has seen enough need not wait for advice.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);

  fmt::print("{}", report::board(record, {.colour = on_terminal(), .folder = options.out}));
  tell_what_was_left_out(plan);
  if (!plan.options().causes && !record.findings.empty()) {
    fmt::print("no cause was looked for, and no case made simple: --no-causes\n");
  } else if (!interrupted) {
    advise(plan, record);
  }
  fmt::print("results: {}/run.json, {}\n", options.out, views_in(options.out));
  if (interrupted) return static_cast<int>(Exit::interrupted);
  return report::exit_status(record);
}

}  // namespace lossgate::ci
