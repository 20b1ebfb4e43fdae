// SPDX-License-Identifier: Apache-2.0
#include "report/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "report/acceptance.h"
#include "report/faults.h"
#include "report/finding_text.h"
#include "report/reservations.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

using properties::Verdict;
using Findings = std::vector<const RecordedFinding*>;

std::int64_t count_of(const std::array<std::int64_t, 5>& counts, Verdict verdict) {
  return counts[static_cast<std::size_t>(verdict)];
}

struct Painter {
  bool colour;
  std::string operator()(const char* code, const std::string& text) const {
    return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  std::string red(const std::string& text) const { return (*this)("31;1", text); }
  std::string green(const std::string& text) const { return (*this)("32", text); }
};

// The cells of one implementation in one dtype, added up over the properties.
struct Row {
  std::array<std::int64_t, 5> verdicts{};
  std::int64_t cases = 0;
  double worst = 0.0;
};

/// Of what never answered there is no error to compare.
std::string worst_text(const Row& row) {
  const bool answered = row.worst > 0.0 || count_of(row.verdicts, Verdict::held) > 0;
  return answered ? brief(row.worst) : "-";
}

std::string head_line(const RunRecord& r) {
  const std::string shard = r.request.shard.empty() ? "" : "shard " + r.request.shard + "  ";
  return fmt::format("lossgate {} ({})  profile {}  seed {}  {}{} of {} cases  {:.1f} s\n",
                     r.version, r.commit, r.request.profile, r.request.seed, shard, r.cases_run,
                     r.cases_planned, r.seconds);
}

std::string implementations(const RunRecord& record, const Painter& paint) {
  std::size_t width = 14;
  for (const Subject& s : record.subjects) width = std::max(width, s.name.size());
  std::string text = fmt::format("\n  {:<{}} {:<5}{:>8}{:>13}{:>10}{:>10}{:>10}{:>10}{:>8}\n",
                                 "implementation", width, "dtype", "cases", "worst ratio", "held",
                                 "violated", "vacuous", "skipped", "note");
  std::string loss;
  for (const Subject& subject : record.subjects) {
    if (subject.faulty()) continue;
    std::vector<std::pair<std::string, Row>> rows;
    for (const Cell& c : record.cells) {
      if (c.loss != subject.loss || c.implementation != subject.name) continue;
      if (rows.empty() || rows.back().first != c.dtype) rows.emplace_back(c.dtype, Row{});
      Row& row = rows.back().second;
      for (std::size_t i = 0; i < 5; ++i) row.verdicts[i] += c.verdicts[i];
      row.cases = std::max(row.cases, c.cases);
      row.worst = std::max(row.worst, c.worst_ratio);
    }
    if (!rows.empty() && subject.loss != loss) text += (loss = subject.loss) + "\n";
    for (const auto& [dtype, row] : rows) {
      const std::int64_t bad = count_of(row.verdicts, Verdict::violated);
      const std::string violated = fmt::format("{:>10}", bad);
      text += fmt::format(
          "  {:<{}} {:<5}{:>8}{:>13}{:>10}{}{:>10}{:>10}{:>8}\n", subject.name, width, dtype,
          row.cases, worst_text(row), count_of(row.verdicts, Verdict::held),
          bad ? paint.red(violated) : violated, count_of(row.verdicts, Verdict::vacuous),
          count_of(row.verdicts, Verdict::skipped), count_of(row.verdicts, Verdict::note));
    }
  }
  return text;
}

std::string shares(const RunRecord& record) {
  const auto counts = verdict_counts(record);
  std::int64_t all = 0;
  for (const std::int64_t count : counts) all += count;
  if (all == 0) return "";
  std::string text = "\n  share of verdicts:";
  for (const Verdict verdict : properties::kAllVerdicts) {
    text += fmt::format(
        " {} {:.2f} %{}", name(verdict),
        100.0 * static_cast<double>(count_of(counts, verdict)) / static_cast<double>(all),
        verdict == Verdict::note ? "" : ",");
  }
  std::int64_t no_digit = 0;
  for (const Cell& c : record.cells) {
    const auto found = c.reasons.find("vacuous: no digit");
    if (found != c.reasons.end()) no_digit += found->second;
  }
  return text + fmt::format(" (no digit {:.2f} %)\n",
                            100.0 * static_cast<double>(no_digit) / static_cast<double>(all));
}

std::string kill_matrix(const RunRecord& record, const Painter& paint) {
  if (record.kills.empty()) return "";
  std::size_t width = 14, properties = 8, killed = 0, early = 0, of_length = 0;
  for (const Kill& k : record.kills) {
    width = std::max(width, k.implementation.size());
    properties = std::max(properties, k.property.size());
    killed += k.killed;
    early += k.within_first_eight();
    of_length += k.by_long_case();
  }
  std::string text = fmt::format("\n  {:<{}}  {:<{}}  {}\n", "faulty variant", width, "property",
                                 properties, "violated by hostile case");
  std::string loss;
  for (const Kill& k : record.kills) {
    if (k.loss != loss) text += (loss = k.loss) + "\n";
    const std::string fate = k.by_long_case() ? fmt::format("long {} ({})", k.long_axis, k.dtype)
                             : k.killed
                                 ? fmt::format("{} ({})", k.hostile_cases, k.dtype)
                                 : paint.red(fmt::format("SURVIVED {} cases{}{}", k.hostile_cases,
                                                         k.trouble.empty() ? "" : ": ", k.trouble));
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", k.implementation, width, k.property, properties,
                        fate);
  }
  const std::size_t of_short = record.kills.size() - of_length;
  text +=
      fmt::format("\n  killed {} of {}, {} ({:.1f} %) within the first 8 hostile cases{}\n", killed,
                  record.kills.size(), early,
                  100.0 * static_cast<double>(early) / std::max(1.0, static_cast<double>(of_short)),
                  of_length > 0 ? fmt::format(", {} by long cases alone", of_length) : "");
  return text;
}

// What is red first, since it must not hide behind what is tolerated; of each, every implementation
// once before any of them a second time, and every property of it once before any a second time.
Findings in_order_of_show(const RunRecord& record) {
  std::vector<std::tuple<bool, int, const RecordedFinding*>> keyed;
  std::map<std::pair<bool, std::string>, int> turns;
  for (const RecordedFinding& f : record.findings) {
    if (!f.red() && f.state != "tolerated") continue;
    keyed.emplace_back(!f.red(), turns[{f.red(), subject_of(f) + "|" + f.property}]++, &f);
  }
  std::ranges::sort(keyed);
  turns.clear();
  for (auto& [tolerated, turn, f] : keyed) turn = turns[{tolerated, subject_of(*f)}]++;
  std::ranges::sort(keyed);
  Findings ordered;
  for (const auto& key : keyed) ordered.push_back(std::get<2>(key));
  return ordered;
}

// How many of each implementation are not shown.
std::string rest(const Findings& left) {
  if (left.empty()) return "";
  std::map<std::string, int> counts;
  for (const RecordedFinding* f : left) counts[subject_of(*f)] += 1;
  std::vector<std::string> each;
  for (const auto& [subject, count] : counts) each.push_back(fmt::format("{} {}", subject, count));
  const std::string text =
      fmt::format("... and {} more in run.json: {}", left.size(), fmt::join(each, ", "));
  return fmt::format("\n{}\n", fmt::join(wrapped(text, 110), "\n    "));
}

// Some in full, one line of each other implementation, and how many are left.
std::string in_turn(const RunRecord& record, const BoardStyle& style) {
  std::string text, lines;
  Findings left;
  std::set<std::string> seen;
  std::size_t shown = 0;
  for (const RecordedFinding* f : in_order_of_show(record)) {
    const bool first = seen.insert(subject_of(*f)).second;
    if (shown++ < style.findings) {
      text += "\n" + finding_text(*f, statement_of(record, f->property), style.folder);
    } else if (first) {
      lines += met_line(*f, style.folder) + "\n";
    } else {
      left.push_back(f);
    }
  }
  return text + (lines.empty() ? "" : "\n" + lines) + rest(left);
}

std::string findings(const RunRecord& record, const BoardStyle& style) {
  std::string text = in_turn(record, style);
  for (const Expectation& e : record.expectations) {
    if (e.met) continue;
    text += fmt::format("\n{}: expected {} to violate {}, but it is {}\n", e.file, e.implementation,
                        e.property, e.verdict);
  }
  for (const UnfitCases& u : record.unfit) text += "\n" + unfit_line(u) + "\n";
  for (const Mended& m : record.mended) text += "\n" + mended_line(m) + "\n";
  for (const Idle& idle : idle_entries(record)) text += "\n" + idle.line() + "\n";
  for (const std::string& trouble : record.troubles) text += "\ntrouble: " + trouble + "\n";
  return text;
}

struct Counts {
  std::int64_t red = 0, tolerated = 0, accepted = 0, survivors = 0, unmet = 0;
};

Counts count(const RunRecord& record) {
  Counts counts;
  for (const RecordedFinding& f : record.findings) {
    (f.red() ? counts.red : f.state == "tolerated" ? counts.tolerated : counts.accepted) += 1;
  }
  std::vector<std::string> survivors;
  for (const Kill& k : record.kills) {
    const std::string name = k.loss + " " + k.implementation;
    const bool counted = std::find(survivors.begin(), survivors.end(), name) != survivors.end();
    if (!k.killed && !counted) survivors.push_back(name);
  }
  counts.survivors = static_cast<std::int64_t>(survivors.size());
  for (const Expectation& e : record.expectations) counts.unmet += !e.met;
  return counts;
}

std::string plural(std::int64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace

int exit_status(const RunRecord& record) {
  const Counts counts = count(record);
  if (counts.red + counts.survivors + counts.unmet > 0) return 1;
  return record.complete() ? 0 : 3;
}

std::string verdict_line(const RunRecord& record) {
  const Counts counts = count(record);
  std::string text;
  switch (exit_status(record)) {
    case 0:
      text = "green";
      break;
    case 1:
      text = "red";
      break;
    default:
      text = "not green";
      break;
  }
  text += ": " + plural(counts.red, "red finding");
  if (counts.red > 1) text += " that look like at least " + plural(least_faults(record), "fault");
  if (counts.tolerated) text += fmt::format(", {} tolerated", counts.tolerated);
  if (counts.accepted) text += fmt::format(", {} accepted", counts.accepted);
  if (counts.survivors) {
    text += ", " + plural(counts.survivors, "faulty variant") + " survived";
  }
  if (!record.mended.empty()) text += fmt::format(", {} mended", record.mended.size());
  if (counts.unmet) text += ", " + plural(counts.unmet, "regression") + " no longer shown";
  if (record.interrupted) text += ", interrupted";
  if (record.cases_run != record.cases_planned) {
    text += fmt::format(", {} of {} cases run", record.cases_run, record.cases_planned);
  }
  if (!record.troubles.empty()) text += ", the run had trouble";
  return text;
}

std::string board(const RunRecord& record, const BoardStyle& style) {
  const Painter paint{style.colour};
  const std::string verdict = verdict_line(record);
  return head_line(record) + implementations(record, paint) + reservations(record) +
         shares(record) + kill_matrix(record, paint) + findings(record, style) + "\n" +
         (exit_status(record) == 0 ? paint.green(verdict) : paint.red(verdict)) + "\n";
}

}  // namespace lossgate::report
