// SPDX-License-Identifier: Apache-2.0
#include "ci/fuzz_worker.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "ci/arm.h"
#include "ci/brought.h"
#include "ci/environment.h"
#include "ci/errors.h"
#include "ci/inquiry.h"
#include "ci/protocol.h"
#include "ci/reply.h"
#include "ci/stint.h"
#include "ci/stored_case.h"
#include "ci/under_way.h"
#include "ci/variant.h"
#include "corpora/files.h"
#include "fuzz/draw_case.h"
#include "fuzz/engine.h"
#include "properties/sibling.h"
#include "reference/spec/contract.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

using Clock = std::chrono::steady_clock;

/// No part waits longer: what a kill costs. How often a kind of violation is looked into counts
/// from part to part, so of a budget in cases parts are of so many cases: what is found then hangs
/// on no clock.
constexpr auto kPartEvery = std::chrono::milliseconds(500);
constexpr std::int64_t kCasesOfPart = 32;

Arm arm_of(const Plan& plan, const Stint& stint) {
  for (Arm& arm : arms_of(plan)) {
    const bool asked =
        arm.loss->signature.id == stint.loss && arm.declared->name == stint.implementation;
    if (asked) return arm;
  }
  throw MachineError("no implementation " + stint.implementation);
}

bool any_violated(const std::vector<properties::Outcome>& outcomes) {
  return std::ranges::any_of(outcomes, [](const auto& each) { return each.violation.has_value(); });
}

class Search final : public fuzz::Target {
 public:
  Search(const Plan& plan, const Stint& stint, UnderWay& under_way)
      : plan_(plan),
        arm_(arm_of(plan, stint)),
        subject_(watched()),
        shown_(stint.shown),
        benign_(plan.selection()),
        most_(stint.cases),
        by_cases_(stint.by_cases),
        asked_before_(stint.asked),
        long_from_(stint.long_from),
        under_way_(under_way),
        inquiry_(plan, shown_, benign_, announce_) {
    inquiry_.on_met = [this](const report::RecordedFinding& met) { tell_met(met); };
  }

  bool is_brought() const { return arm_.only != nullptr; }
  const LossSignature& signature() const override { return arm_.loss->signature; }
  fuzz::Profile profile() const override { return plan_.options().profile; }

  /// Campaigns have one corpus for each loss, whatever the contracts of the subjects.
  bool takes(const Case& c) const override {
    return !is_brought() || keeps_to_contract(signature(), c);
  }

  Case fresh(std::uint64_t seed) override {
    // Between two cases of the engine's, which asks for the edges of each.
    if (long_from_ >= 0 && asked_before_ + ordinal_ >= kWithLongCases) ask_long();
    fuzz::Choices choices(seed);
    const Dtype dtype = arm_.dtypes[seed % arm_.dtypes.size()];
    return draw_case(signature(), dtype, profile(), choices);
  }

  std::vector<fuzz::Feature> ask(const Case& c, std::string_view text) override {
    return ask(planned_for(arm_, c), text);
  }

  /// A case on which something was found before, as its callers have it now.
  void ask_again(const std::string& file) {
    Case c = corpora::read_case_file(
        file, [&](std::string_view loss) { return plan_.selection().find_signature(loss); });
    c.provenance = {};  // whoever finds something on it says so anew
    bool outside_contract = false;
    for (const auto& brought : plan_.selection().brought) {
      if (&brought->implementation != arm_.only) continue;
      c = as_its_callers_have_it(signature(), std::move(c));
      outside_contract = is_outside_contract(*brought, c);
    }
    PlannedCase planned = planned_for(arm_, std::move(c));
    planned.outside_contract = outside_contract;
    if (!plan_.selection().has(planned.dtype)) return wait_for_turn();
    ask(std::move(planned), "");
  }

  void keep(std::string_view text, const std::vector<fuzz::Feature>& fresh) override {
    reply("kept " + encode(Kept{std::string(text), fresh}));
  }

 private:
  /// What a call fails of is looked into, too, and told before its process may be ended.
  impl::Implementation watched() {
    impl::Implementation subject = guarded(*arm_.declared, [this] { under_way_.progress(); });
    subject.evaluate = [this, inner = subject.evaluate](const LossSignature& loss, const Case& c) {
      try {
        return inner(loss, c);
      } catch (const ImplementationThrew&) {
        under_way_.explain(true);
        throw;
      }
    };
    return subject;
  }

  /// Once for each implementation, when it has shown what short cases show (rule E10). Nothing goes
  /// on from them: a mutation of one would cost as much.
  void ask_long() {
    std::int64_t i = std::exchange(long_from_, -1);
    while (std::optional<PlannedCase> planned = long_case(plan_, arm_, i)) {
      reply("long " + std::to_string(i++) + "\n");
      ask(std::move(*planned), "");  // it can be drawn again, and its text is megabytes
    }
    reply("long end\n");
  }

  std::vector<fuzz::Feature> ask(PlannedCase planned, std::string_view text) {
    under_way_.begin(text);
    try {
      std::vector<fuzz::Feature> features = answered(std::move(planned));
      under_way_.end();
      tell();
      under_way_.explain(false);
      if (is_over()) wait_for_turn();
      return features;
    } catch (const std::exception& error) {  // of ours: what the subject throws is a finding
      reply("failed " + one_line(error.what()) + "\n");
      ::_exit(static_cast<int>(Exit::broken));
    }
  }

  std::vector<fuzz::Feature> answered(PlannedCase planned) {
    std::vector<fuzz::Feature> features;
    properties::CaseStudy study(*arm_.loss, planned.c);
    if (arm_.twin && !study.refusal()) properties::give_sibling(study, *arm_.twin);
    inquiry_.ask(study, subject_, planned, ordinal_++,
                 [&](properties::Evaluation& evaluation, const auto& outcomes) {
                   if (any_violated(outcomes)) under_way_.explain(true);
                   if (!planned.long_axis) features = fuzz::features_of(evaluation, outcomes);
                 });
    inquiry_.count(planned);
    return features;
  }

  bool is_over() const { return most_ > 0 && ordinal_ >= most_; }

  bool part_is_due() const {
    return by_cases_ ? ordinal_ - told_at_ >= kCasesOfPart : Clock::now() - told_ >= kPartEvery;
  }

  /// With all that is not told yet, as it would be if the process ended now.
  void tell_met(const report::RecordedFinding& met) {
    report::RunRecord so_far = inquiry_.record();
    so_far.cases_run += 1;  // that which is being asked
    add_finding(so_far, met);
    reply("met " + report::to_json(so_far, -1));
  }

  void tell() {
    const auto is_new = [](const auto& finding) { return !finding.case_text.empty(); };
    const bool spent = inquiry_.worn_out();
    const bool found = std::ranges::any_of(inquiry_.record().findings, is_new);
    if (!found && !spent && !is_over() && !part_is_due()) return;
    reply("part " + report::to_json(inquiry_.take(), -1));
    told_ = Clock::now();
    told_at_ = ordinal_;
    if (!spent) return;
    reply("spent\n");
    while (true) ::pause();
  }

  /// What this process has learnt is lost with it: it waits to be told to go on, or is ended.
  void wait_for_turn() {
    reply("turn\n");
    std::string more;
    if (!std::getline(std::cin, more)) throw MachineError("the campaign no longer speaks");
    const std::int64_t cases = std::stoll(more);
    most_ = cases > 0 ? ordinal_ + cases : 0;
  }

  const Plan& plan_;
  Arm arm_;
  impl::Implementation subject_;
  Shown shown_;
  BenignCases benign_;
  std::int64_t most_;  ///< its turn is over when so many were asked; 0: any
  bool by_cases_;
  std::int64_t asked_before_, long_from_;
  UnderWay& under_way_;
  Announce announce_ = [this](std::int64_t, const std::string&) { under_way_.progress(); };
  Inquiry inquiry_;
  std::int64_t ordinal_ = 0, told_at_ = 0;
  /// The first case is told at once: a turn may be over before the next part.
  Clock::time_point told_ = Clock::now() - kPartEvery;
};

/// An allocation beyond it fails in the implementation, rather than end the machine. A sanitizer
/// takes terabytes of its own.
void limit_memory([[maybe_unused]] std::int64_t mib) {
#if !__has_feature(address_sanitizer)
  if (mib <= 0) return;
  const auto bytes = static_cast<rlim_t>(mib) << 20;
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
#endif
}

/// libFuzzer tells of itself on standard error.
void be_silent() {
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0) return;
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::close(nothing);
}

}  // namespace

int run_fuzz_worker() {
  become_worker();
  std::string plan_line, stint_line;
  if (!std::getline(std::cin, plan_line) || !std::getline(std::cin, stint_line)) {
    return static_cast<int>(Exit::usage);
  }
  try {
    const PlanOptions options = decode_plan(plan_line);
    check_environment(options.filters.subjects.empty());
    const Plan plan(options);
    const Stint stint = decode_stint(stint_line);
    UnderWay under_way(kSharedDescriptor);
    Search search(plan, stint, under_way);
    be_silent();
    if (!search.is_brought()) limit_memory(stint.memory_mib);  // which has a process of its own
    reply("ready\n");
    if (!stint.again.empty()) search.ask_again(stint.again);
    fuzz::drive(
        search,
        {.seed = stint.seed, .corpus = stint.corpus, .seen = stint.seen, .guided = stint.guided});
  } catch (const std::exception& error) {
    reply("failed " + one_line(error.what()) + "\n");
  }
  return static_cast<int>(Exit::broken);
}

}  // namespace lossgate::ci
