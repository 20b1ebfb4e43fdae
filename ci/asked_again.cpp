// SPDX-License-Identifier: Apache-2.0
#include "ci/asked_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ci/arm.h"
#include "ci/earlier_calls.h"
#include "ci/errors.h"
#include "ci/live_line.h"
#include "ci/protocol.h"
#include "ci/said_again.h"
#include "ci/stint.h"
#include "ci/waivers.h"
#include "corpora/files.h"
#include "corpora/format_error.h"
#include "report/finding_text.h"

namespace lossgate::ci {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);

/// What was found on one case of one implementation.
struct Question {
  const Arm* arm = nullptr;
  std::string file;  ///< beside the record
  std::vector<report::Mended> kept;
};

std::vector<Question> questions_of(const std::vector<Arm>& arms, const report::RunRecord& record) {
  std::vector<report::Mended> all = record.mended;
  for (const report::RecordedFinding& f : record.findings) {
    all.push_back({f.fingerprint, f.loss, f.implementation, f.property, f.case_file, ""});
  }
  std::map<std::pair<const Arm*, std::string>, Question> by_case;
  for (report::Mended& kept : all) {
    const auto arm = std::ranges::find(arms, kept.loss + "/" + kept.implementation, &Arm::name);
    if (arm == arms.end() || kept.case_file.empty()) continue;  // nobody asks it this time
    Question& question = by_case[{&*arm, kept.case_file}];
    question.arm = &*arm;
    question.file = kept.case_file;
    question.kept.push_back(std::move(kept));
  }
  std::vector<Question> questions;
  for (auto& [key, question] : by_case) questions.push_back(std::move(question));
  return questions;
}

class Asker {
 public:
  Asker(const Plan& plan, const CampaignOptions& options, CampaignFolder& folder,
        report::RunRecord& record)
      : plan_(plan),
        options_(options),
        folder_(folder),
        record_(record),
        arms_(dealt(arms_of(plan), options.shard)),
        questions_(questions_of(arms_, record)),
        patience_(patience_with(plan.selection(), options.timeout_s)) {}

  void run(const std::atomic<bool>& interrupted) {
    if (questions_.empty()) return;
    const auto workers = std::min(static_cast<std::size_t>(options_.workers), questions_.size());
    for (std::size_t i = 0; i < workers; ++i) slots_.push_back(std::make_unique<Slot>());
    LiveLine line;
    while (!interrupted && give()) {
      std::vector<Child*> children;
      for (const auto& slot : slots_) children.push_back(slot->child.get());
      for (const std::size_t i : speaking(children, kTick)) listen(*slots_[i]);
      for (auto& slot : slots_) end_what_hangs(*slot);
      if (line.due()) line.show(fmt::format("asking again: {} of {}", next_, questions_.size()));
    }
    line.clear();
    tell();
  }

 private:
  struct Slot {
    std::unique_ptr<Child> child;
    UnderWay under_way;
    const Question* question = nullptr;
    bool ready = false;
    Clock::time_point started;
  };

  /// False when all is done.
  bool give() {
    for (auto& slot : slots_) {
      if (!slot->child && next_ < questions_.size()) start(*slot, questions_[next_++]);
    }
    return std::ranges::any_of(slots_, [](const auto& slot) { return slot->child != nullptr; });
  }

  void start(Slot& slot, const Question& question) {
    slot.question = &question;
    slot.ready = false;
    slot.started = Clock::now();
    slot.under_way.end();
    slot.child = std::make_unique<Child>("fuzz-worker", slot.under_way.descriptor());
    Stint stint;
    stint.loss = question.arm->loss->signature.id;
    stint.implementation = question.arm->declared->name;
    stint.cases = 1;
    stint.long_from = -1;
    stint.memory_mib = options_.memory_mib;
    stint.again = (folder_.path() / question.file).string();
    for (const report::Mended& kept : question.kept) {
      // The case of a crash is as simple as it gets, and takes long to make so.
      if (is_of_run(kept.property)) stint.shown[kept.fingerprint] = properties::Grade::ordinary;
    }
    slot.child->write(encode(plan_.options()));
    slot.child->write(encode(stint));
  }

  void listen(Slot& slot) {
    const bool open = slot.child->read();
    while (slot.child) {
      const auto line = slot.child->next_line();
      if (!line) break;
      hear(slot, *line);
    }
    if (!open && slot.child) failed(slot, "does_not_crash", slot.child->end());
  }

  void hear(Slot& slot, const std::string& line) {
    if (line == "ready") {
      slot.ready = true;
    } else if (line.starts_with("part ")) {
      take(*slot.question, decode_record(std::string_view(line).substr(5)));
    } else if (!line.starts_with("met ")) {
      slot.child.reset();  // its turn is over, or it cannot work: what was found stays
    }
  }

  void end_what_hangs(Slot& slot) {
    if (!slot.child) return;
    const std::chrono::duration<double> loading = Clock::now() - slot.started;
    const double silent =
        slot.ready ? slot.under_way.since_sign_of_life().count() : loading.count();
    const double patience = slot.ready ? patience_ : std::max(patience_, kSecondsToLoad);
    if (silent <= patience) return;
    slot.child->end();
    failed(slot, "does_not_hang", fmt::format("no answer within {} s", patience));
  }

  /// Of one of ours, which runs in the process; a brought one has its own.
  void failed(Slot& slot, const std::string& property, const std::string& cause) {
    slot.child.reset();
    const Arm& arm = *slot.question->arm;
    if (arm.only || !slot.under_way.asking()) return;
    report::RunRecord part;
    try {
      const Case c = decode_case(arm, corpora::read_text(folder_.path() / slot.question->file));
      add_failure(part, planned_for(arm, c), 0, *arm.declared, property, cause);
    } catch (const std::runtime_error&) {  // no case any more
      return;
    }
    take(*slot.question, part);
  }

  void take(const Question& question, const report::RunRecord& answer) {
    std::vector<report::RecordedFinding> others = answer.findings;
    for (const report::Mended& kept : question.kept) {
      SaidAgain said = said_again(kept.property, answer);
      if (said.finding) {
        std::erase_if(others, [&](const auto& f) { return f.property == said.finding->property; });
        failing_ += 1;
        find_again(kept, std::move(*said.finding));
      } else if (said.mended == "held" && hangs_on_earlier_calls(kept.fingerprint)) {
        continue;  // it held alone when it was found: nothing is known
      } else if (!said.mended.empty()) {
        mended_ += 1;
        mend_one(kept, said.mended);
      } else if (!answer.findings.empty()) {  // which goes before it: it stays as it was
        failing_ += 1;
      }
    }
    for (report::RecordedFinding& finding : others) {  // nobody has met it before
      if (finding.case_text.empty() || known(finding.fingerprint)) continue;
      fresh_ += 1;
      judge(finding, options_.policy);
      fmt::print("asked again: {}\n", report::met_line(finding, folder_.path().string()));
      enter(finding.fingerprint, finding);
      merge(record_, cells_with(finding, answer));
    }
  }

  /// The finding of that name, or null.
  const report::RecordedFinding* known(const std::string& fingerprint) const {
    const auto at =
        std::ranges::find(record_.findings, fingerprint, &report::RecordedFinding::fingerprint);
    return at == record_.findings.end() ? nullptr : &*at;
  }

  bool hangs_on_earlier_calls(const std::string& fingerprint) const {
    const report::RecordedFinding* found = known(fingerprint);
    return found && found->cause == kStateBetweenCalls;
  }

  void find_again(const report::Mended& kept, report::RecordedFinding finding) {
    if (const report::RecordedFinding* before =
            known(kept.fingerprint)) {  // asked again it counts as no other case
      finding.count = before->count;
      finding.ordinal = before->ordinal;
    } else {
      fmt::print("fails again: {} ({})\n", finding.fingerprint, finding.case_file);
    }
    enter(kept.fingerprint, std::move(finding));
  }

  void enter(const std::string& fingerprint, report::RecordedFinding finding) {
    folder_.found_again(fingerprint, finding);
    finding.case_text.clear();
    report::RunRecord now;
    now.findings.push_back(std::move(finding));
    replace(record_, fingerprint, now);
  }

  void mend_one(report::Mended mended, const std::string& reason) {
    mended.reason = reason;
    if (known(mended.fingerprint)) fmt::print("{}\n", report::mended_line(mended));
    folder_.mended(mended);
    mend(record_, mended);
  }

  void tell() const {
    std::size_t kept = 0;
    for (const Question& question : questions_) kept += question.kept.size();
    const std::size_t silent = kept - static_cast<std::size_t>(failing_ + mended_);
    fmt::print("{} finding{} of before asked again: {} fail{}, {} mended", kept,
               kept == 1 ? "" : "s", failing_, failing_ == 1 ? "s" : "", mended_);
    if (silent > 0) fmt::print(", {} not answered", silent);
    fmt::print("{}\n", fresh_ > 0 ? fmt::format("; {} new on their cases", fresh_) : "");
    std::fflush(stdout);
  }

  const Plan& plan_;
  const CampaignOptions& options_;
  CampaignFolder& folder_;
  report::RunRecord& record_;
  const std::vector<Arm> arms_;
  const std::vector<Question> questions_;
  const double patience_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t next_ = 0;
  std::int64_t failing_ = 0, mended_ = 0, fresh_ = 0;
};

}  // namespace

void ask_again(const Plan& plan, const CampaignOptions& options, CampaignFolder& folder,
               report::RunRecord& record, const std::atomic<bool>& interrupted) {
  try {
    Asker(plan, options, folder, record).run(interrupted);
  } catch (const MachineError& error) {  // what was found stands
    record.troubles.emplace_back(error.what());
  }
}

}  // namespace lossgate::ci
