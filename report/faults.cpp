// SPDX-License-Identifier: Apache-2.0
#include "report/faults.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/causes.h"
#include "properties/diagnosis.h"

namespace lossgate::report {
namespace {

/// What a finding has in common with the others of its fault.
std::vector<std::string> marks(const RecordedFinding& finding) {
  const std::string subject = subject_of(finding);
  std::vector<std::string> all;
  for (const std::string& seen : finding.shows) all.push_back(subject + "|shows|" + seen);
  // What was seen, where no experiment says why, may have any reason.
  const properties::Cause* cause = properties::find_cause(finding.cause);
  if (cause && !cause->symptom) all.push_back(subject + "|cause|" + finding.cause);
  if (!finding.source_text.empty()) {
    const std::string line = std::to_string(finding.source_line);
    all.push_back(subject + "|line|" + finding.source_file + ":" + line);
  }
  return all;
}

/// Findings that were joined have one representative.
class Groups {
 public:
  explicit Groups(std::size_t findings) : of_(findings) {
    std::iota(of_.begin(), of_.end(), std::size_t{0});
  }

  std::size_t representative(std::size_t finding) {
    while (of_[finding] != finding) finding = of_[finding] = of_[of_[finding]];
    return finding;
  }

  void join(std::size_t one, std::size_t other) {
    of_[representative(one)] = representative(other);
  }

 private:
  std::vector<std::size_t> of_;
};

/// How often findings of one fault were given a cause, each as much as it is sure of it.
struct Votes {
  const RecordedFinding* surest = nullptr;  ///< of most cases, of equals the first
  double most = 0.0, sure = 0.0, cases = 0.0;

  void add(const RecordedFinding& finding) {
    const auto own = static_cast<double>(finding.count);
    const double own_sure = own * finding.confidence;
    if (!surest || own_sure > most) surest = &finding, most = own_sure;
    sure += own_sure;
    cases += own;
  }
  std::pair<double, double> rank() const { return {sure, cases}; }
};

}  // namespace

std::string subject_of(const RecordedFinding& finding) {
  return finding.loss + "/" + finding.implementation;
}

void group_by_fault(RunRecord& record) {
  Groups groups(record.findings.size());
  std::map<std::string, std::size_t> marked;
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    for (std::string& mark : marks(record.findings[i])) {
      groups.join(i, marked.try_emplace(std::move(mark), i).first->second);
    }
  }
  std::map<std::size_t, std::map<std::string, Votes>> votes;
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    const RecordedFinding& finding = record.findings[i];
    votes[groups.representative(i)][finding.cause].add(finding);
  }
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    const auto& causes = votes[groups.representative(i)];
    const auto chosen =
        std::ranges::max_element(causes, {}, [](const auto& cause) { return cause.second.rank(); });
    record.findings[i].fault = chosen->second.surest->fingerprint;
  }
}

std::int64_t least_faults(const RunRecord& record) {
  std::map<std::string, std::map<std::string, std::set<std::string>>>
      sure;  // by subject and format
  for (const RecordedFinding& f : record.findings) {
    if (!f.red()) continue;
    auto& own = sure[subject_of(f)];
    if (f.confidence >= properties::kSure)
      own[f.dtype].insert(f.fault.empty() ? f.fingerprint : f.fault);
  }
  std::int64_t count = 0;
  for (const auto& [subject, formats] : sure) {
    std::ptrdiff_t most = 1;
    for (const auto& [format, faults] : formats) most = std::max(most, std::ssize(faults));
    count += most;
  }
  return count;
}

void close_record(RunRecord& record) {
  put_in_order(record);
  group_by_fault(record);
  count_relaxed(record);
}

}  // namespace lossgate::report
