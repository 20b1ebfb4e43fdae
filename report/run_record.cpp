// SPDX-License-Identifier: Apache-2.0
#include "report/run_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "reference/spec/dtype.h"

namespace lossgate::report {
namespace {

auto key_of(const Cell& c) { return std::tie(c.loss, c.implementation, c.dtype, c.property); }
auto key_of(const Timing& t) { return std::tie(t.loss, t.implementation, t.dtype); }
auto key_of(const Kill& k) { return std::tie(k.loss, k.implementation, k.property); }
auto key_of(const Expectation& e) { return std::tie(e.file, e.implementation, e.property); }
auto key_of(const Coverage& c) { return std::tie(c.loss, c.trait); }
auto key_of(const SplitErrors& s) { return std::tie(s.loss, s.implementation, s.dtype); }
auto key_of(const RecordedFinding& f) { return std::tie(f.fingerprint); }
auto key_of(const Mended& m) { return std::tie(m.fingerprint); }

void keep_worst(Cell& into, double ratio, std::int64_t ordinal, const std::string& id) {
  const bool worse = ratio > into.worst_ratio;
  const bool sooner = ratio == into.worst_ratio && ordinal < into.worst_ordinal;
  if (ordinal < 0 || !(worse || sooner || into.worst_ordinal < 0)) return;
  into.worst_ratio = ratio;
  into.worst_ordinal = ordinal;
  into.worst_case = id;
}

void add(Cell& into, const Cell& part) {
  into.cases += part.cases;
  for (std::size_t i = 0; i < into.verdicts.size(); ++i) into.verdicts[i] += part.verdicts[i];
  for (const auto& [reason, count] : part.reasons) into.reasons[reason] += count;
  for (const auto& [decade, count] : part.ratios) into.ratios[decade] += count;
  into.compared += part.compared;
  into.no_digit += part.no_digit;
  keep_worst(into, part.worst_ratio, part.worst_ordinal, part.worst_case);
}

void add(Timing& into, const Timing& part) {
  into.cases += part.cases;
  into.calls += part.calls;
  into.seconds += part.seconds;
}

void add(Coverage& into, const Coverage& part) { into.cases += part.cases; }

void add(SplitErrors& into, const SplitErrors& part) {
  for (const auto& [decade, count] : part.off_by) into.off_by[decade] += count;
  const auto rank_of = [](const SplitErrors& s) {
    return std::tuple(s.worst_ordinal < 0, -std::fabs(s.worst), s.worst_ordinal);
  };
  if (!(rank_of(part) < rank_of(into))) return;
  into.worst = part.worst;
  into.worst_ordinal = part.worst_ordinal;
  into.worst_case = part.worst_case;
  into.worst_split = part.worst_split;
}

// The plainest case is kept, and of those the first; what is only counted has none.
void add(RecordedFinding& into, const RecordedFinding& part) {
  const std::int64_t count = into.count + part.count;
  const auto rank_of = [](const RecordedFinding& f) {
    return std::tuple(f.case_id.empty(), properties::parse_grade(f.grade), f.ordinal);
  };
  if (rank_of(part) < rank_of(into)) into = part;
  into.count = count;
}

// Each variant's row and each expectation is one task's: there is nothing to add up.
void add(Kill& into, const Kill& part) { into = part; }
void add(Expectation& into, const Expectation& part) { into = part; }
void add(Mended& into, const Mended& part) { into = part; }

template <class T>
void merge_rows(std::vector<T>& whole, const std::vector<T>& part) {
  for (const T& row : part) {
    const auto same = std::find_if(whole.begin(), whole.end(),
                                   [&](const T& other) { return key_of(other) == key_of(row); });
    if (same == whole.end()) {
      whole.push_back(row);
    } else {
      add(*same, row);
    }
  }
}

// "1e-3" holds ratios from there up to 1e-2; all below 1e-6 are as good as none.
std::string decade_of(double ratio) {
  if (std::isinf(ratio)) return "inf";
  if (ratio < 1e-6) return "0";
  return "1e" + std::to_string(static_cast<int>(std::floor(std::log10(ratio))));
}

// The decade, cut where a comparison begins to be violated: "1e0" ends there, "2e0" begins.
std::string closeness_of(double ratio) {
  const std::string decade = decade_of(ratio);
  return decade == "1e0" && ratio > reference::kThreshold ? "2e0" : decade;
}

// "-1e-2": the decade with its sign.
std::string signed_decade_of(double off_by) {
  const std::string decade = decade_of(std::fabs(off_by));
  return decade == "0" ? decade : (off_by < 0.0 ? "-" : "+") + decade;
}

// The position of what fits in a list; what is unknown comes last.
template <class List, class Fits>
std::size_t rank(const List& list, Fits fits) {
  return static_cast<std::size_t>(std::find_if(list.begin(), list.end(), fits) - list.begin());
}

std::size_t dtype_rank(const std::string& dtype) {
  return dtype.empty() ? 0 : static_cast<std::size_t>(parse_dtype(dtype).value_or(Dtype::boolean));
}

}  // namespace

Cell& cell(RunRecord& record, const std::string& loss, const std::string& implementation,
           const std::string& dtype, const std::string& property) {
  for (Cell& c : record.cells) {
    if (key_of(c) == std::tie(loss, implementation, dtype, property)) return c;
  }
  Cell& made = record.cells.emplace_back();
  std::tie(made.loss, made.implementation, made.dtype, made.property) =
      std::tie(loss, implementation, dtype, property);
  return made;
}

void tally(Cell& cell, const properties::Outcome& outcome, std::int64_t ordinal) {
  cell.cases += 1;
  cell.verdicts[static_cast<std::size_t>(outcome.verdict)] += 1;
  if (!outcome.reason.empty()) {
    cell.reasons[std::string(name(outcome.verdict)) + ": " + outcome.reason] += 1;
  }
  cell.compared += outcome.compared;
  cell.no_digit += outcome.no_digit;
  const bool number = outcome.worst_ratio == outcome.worst_ratio;
  const double ratio = number ? outcome.worst_ratio : std::numeric_limits<double>::infinity();
  if (outcome.compared == 0 && !outcome.violation) return;
  keep_worst(cell, ratio, ordinal, {});
  cell.ratios[closeness_of(ratio)] += 1;
}

void cover(RunRecord& record, const std::string& loss, const std::string& trait, bool shown) {
  merge_rows(record.coverage, {Coverage{.loss = loss, .trait = trait, .cases = shown ? 1 : 0}});
}

SplitErrors& count_splits(RunRecord& record, const std::string& loss,
                          const std::string& implementation, const std::string& dtype,
                          const properties::SplitBias& bias, std::int64_t ordinal) {
  SplitErrors row;
  std::tie(row.loss, row.implementation, row.dtype) = std::tie(loss, implementation, dtype);
  for (const double off_by : bias.off_by) {
    row.off_by[signed_decade_of(off_by)] += 1;
    if (row.worst_ordinal >= 0 && std::fabs(off_by) <= std::fabs(row.worst)) continue;
    row.worst = off_by;
    row.worst_ordinal = ordinal;
  }
  row.worst_split = bias.worst;
  merge_rows(record.splits, {row});
  return *std::ranges::find_if(record.splits,
                               [&](const SplitErrors& s) { return key_of(s) == key_of(row); });
}

void add_finding(RunRecord& record, RecordedFinding finding) {
  merge_rows(record.findings, {std::move(finding)});
}

void merge(RunRecord& whole, const RunRecord& part) {
  whole.cases_run += part.cases_run;
  whole.troubles.insert(whole.troubles.end(), part.troubles.begin(), part.troubles.end());
  merge_rows(whole.cells, part.cells);
  merge_rows(whole.timings, part.timings);
  merge_rows(whole.kills, part.kills);
  merge_rows(whole.expectations, part.expectations);
  merge_rows(whole.findings, part.findings);
  merge_rows(whole.coverage, part.coverage);
  merge_rows(whole.splits, part.splits);
  merge_rows(whole.mended, part.mended);
  // Whoever meets it has the last word.
  std::erase_if(whole.mended, [&](const Mended& m) {
    return std::ranges::find(whole.findings, m.fingerprint, &RecordedFinding::fingerprint) !=
           whole.findings.end();
  });
}

void add_subjects(RunRecord& whole, const RunRecord& part) {
  for (const Subject& subject : part.subjects) {
    const bool known = std::ranges::any_of(whole.subjects, [&](const Subject& other) {
      return other.loss == subject.loss && other.name == subject.name;
    });
    if (!known) whole.subjects.push_back(subject);
  }
}

void put_in_order(RunRecord& record) {
  const auto subject = [&](const auto& row) {
    return rank(record.subjects, [&](const Subject& s) {
      return s.name == row.implementation && s.loss == row.loss;
    });
  };
  const auto property = [&](const auto& row) {
    return rank(record.properties, [&](const PropertyEntry& p) { return p.name == row.property; });
  };
  const auto sort_by = [](auto& rows, auto key) {
    std::sort(rows.begin(), rows.end(),
              [&](const auto& a, const auto& b) { return key(a) < key(b); });
  };
  sort_by(record.cells,
          [&](const Cell& c) { return std::tuple(subject(c), dtype_rank(c.dtype), property(c)); });
  sort_by(record.timings,
          [&](const Timing& t) { return std::tuple(subject(t), dtype_rank(t.dtype)); });
  sort_by(record.splits,
          [&](const SplitErrors& s) { return std::tuple(subject(s), dtype_rank(s.dtype)); });
  sort_by(record.kills, [&](const Kill& k) { return std::tuple(subject(k), property(k)); });
  sort_by(record.expectations,
          [&](const Expectation& e) { return std::tuple(e.file, e.implementation, property(e)); });
  sort_by(record.findings, [&](const RecordedFinding& f) {
    return std::tuple(subject(f), property(f), f.ordinal, f.fingerprint);
  });
  sort_by(record.mended,
          [&](const Mended& m) { return std::tuple(subject(m), property(m), m.fingerprint); });
  sort_by(record.coverage, [&](const Coverage& c) {
    const auto loss = rank(record.subjects, [&](const Subject& s) { return s.loss == c.loss; });
    return std::tuple(loss, c.loss, c.trait);
  });
  std::sort(record.troubles.begin(), record.troubles.end());
}

std::vector<std::string> brought_elsewhere(const RunRecord& record) {
  std::vector<std::string> names = record.request.brought;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(record.subjects,
                               [&](const Subject& s) { return s.loss + "/" + s.name == name; });
  });
  return names;
}

std::vector<std::string> elsewhere_lines(const RunRecord& record) {
  if (record.request.shard.empty()) return {};
  std::vector<std::string> lines = brought_elsewhere(record);
  for (std::string& line : lines) line += ": asked by another shard";
  return lines;
}

std::string_view statement_of(const RunRecord& record, std::string_view property) {
  for (const PropertyEntry& p : record.properties) {
    if (p.name == property) return p.statement;
  }
  return "";
}

std::array<std::int64_t, 5> verdict_counts(const RunRecord& record) {
  std::array<std::int64_t, 5> counts{};
  for (const Cell& c : record.cells) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += c.verdicts[i];
  }
  return counts;
}

}  // namespace lossgate::report
