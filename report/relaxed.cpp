// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "report/run_record.h"

namespace lossgate::report {
namespace {

constexpr const char* kUnsplit = "skipped: contract: micro_batches";

std::int64_t count_of(const Cell& c, const std::string& reason) {
  const auto found = c.reasons.find(reason);
  return found == c.reasons.end() ? 0 : found->second;
}

constexpr std::string_view kRedAlready[] = {"disagrees with the formula already", "not finite",
                                            "no values"};

std::int64_t red_already(const Cell& c) {
  std::int64_t count = 0;
  for (const std::string_view reason : kRedAlready) {
    count += count_of(c, "skipped: " + std::string(reason));
  }
  return count;
}

/// Of one property.
struct Questions {
  std::int64_t relaxed = 0;            ///< not asked by contract
  std::int64_t asked = 0, red = 0;     ///< red: of these, left since the answer is wrong
  std::int64_t idle = 0, skipped = 0;  ///< of those that were asked; idle: nothing triggered it

  void add(const Cell& c) {
    // To refuse what is invalid is more than callers are promised, unless a contract says so.
    const std::int64_t unpromised = count_of(c, "skipped: contract: refuses_invalid");
    const std::int64_t contract = count_of(c, "skipped: contract") + count_of(c, kUnsplit) +
                                  count_of(c, "skipped: " + std::string(kOutsideContract));
    relaxed += contract;
    asked += c.cases - contract - unpromised;
    red += red_already(c);
    idle += count_of(c, "vacuous: no trigger");
    skipped +=
        c.verdicts[static_cast<std::size_t>(properties::Verdict::skipped)] - contract - unpromised;
  }
};

}  // namespace

bool is_red_already(std::string_view reason) {
  return std::ranges::find(kRedAlready, reason) != std::end(kRedAlready);
}

void count_relaxed(RunRecord& record) {
  for (Subject& subject : record.subjects) {
    std::map<std::string, Questions> all;  // of each property
    std::vector<std::string> order;
    for (const Cell& c : record.cells) {
      if (c.loss != subject.loss || c.implementation != subject.name) continue;
      if (!all.contains(c.property)) order.push_back(c.property);
      all[c.property].add(c);
    }
    subject.relaxed_by_contract = 0;
    subject.never_asked.clear();
    subject.never_triggered.clear();
    for (const std::string& property : order) {
      const Questions& q = all[property];
      subject.relaxed_by_contract += q.relaxed;
      if (q.relaxed + q.red > 0 && q.asked == q.red) subject.never_asked.push_back(property);
      if (q.idle > 0 && q.asked == q.idle + q.skipped) subject.never_triggered.push_back(property);
    }
  }
}

std::string never_asked_text(const RunRecord& record, const Subject& subject) {
  std::string text;
  for (const std::string& property : subject.never_asked) {
    std::int64_t unsplit = 0, red = 0;
    for (const Cell& c : record.cells) {
      if (c.loss != subject.loss || c.implementation != subject.name || c.property != property)
        continue;
      unsplit += count_of(c, kUnsplit);
      red += red_already(c);
    }
    text += (text.empty() ? "" : ", ") + property;
    if (unsplit > 0) text += " (micro_batches = \"none\")";
    if (red > 0) text += " (red already)";
  }
  return text;
}

}  // namespace lossgate::report
