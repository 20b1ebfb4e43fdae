// SPDX-License-Identifier: Apache-2.0
#include "ci/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "ci/campaign_folder.h"
#include "ci/errors.h"
#include "ci/missing_shards.h"
#include "ci/out_folder.h"
#include "corpora/files.h"
#include "report/board.h"
#include "report/faults.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

/// The findings of the journal, with the texts of their cases.
report::RunRecord whole_findings(const fs::path& folder, const History& history) {
  report::RunRecord record;
  for (report::RecordedFinding finding : history.findings.findings) {
    const fs::path file = folder / finding.case_file;
    if (!fs::exists(file)) continue;
    finding.case_text = corpora::read_text(file);
    record.findings.push_back(std::move(finding));
  }
  record.mended = history.findings.mended;
  return record;
}

/// What one of them meets is not mended, whatever another says.
void keep_what_fails(std::vector<History>& histories) {
  report::RunRecord all;
  for (const History& history : histories) merge(all, history.findings);
  for (History& history : histories) {
    std::erase_if(history.findings.mended, [&](const report::Mended& mended) {
      return std::ranges::find(all.findings, mended.fingerprint,
                               &report::RecordedFinding::fingerprint) != all.findings.end();
    });
  }
}

/// Subjects, what was brought, and properties that only some of the records have.
void add_rows(report::RunRecord& whole, const report::RunRecord& part) {
  add_subjects(whole, part);
  std::vector<std::string>& brought = whole.request.brought;
  for (const std::string& name : part.request.brought) {
    if (std::ranges::find(brought, name) == brought.end()) brought.push_back(name);
  }
  if (whole.properties.empty()) whole.properties = part.properties;
}

}  // namespace

int run_merge(const MergeOptions& options) {
  const fs::path out = options.out;
  if (holds_campaign(out)) {
    throw InputError(options.out + " holds a campaign already; say another --out");
  }
  check_out(out);
  refuse_record_of_gate(out);
  // All is read before anything is written: what cannot be read leaves no half of a campaign.
  std::set<fs::path> given;
  std::vector<History> histories;
  std::vector<report::RunRecord> parts;
  for (const std::string& folder : options.folders) {
    histories.push_back(read_history(fs::path(folder) / "journal"));
    if (!histories.back().begun) throw InputError(folder + " holds no campaign");
    if (!given.insert(fs::canonical(folder)).second) {
      throw InputError(folder + " is named twice: its cases would be counted twice");
    }
    parts.push_back(report::read_record(fs::path(folder) / "run.json"));
  }
  const std::vector<std::string> missing = missing_shards(parts);
  keep_what_fails(histories);
  CampaignFolder merged(out, histories.front().seed);
  report::RunRecord record;
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const fs::path folder = options.folders[i];
    const History& history = histories[i];
    if (history.damaged > 0) {
      fmt::print("{}/journal: {} damaged lines skipped\n", folder.string(), history.damaged);
    }
    merged.take_over(folder, history, whole_findings(folder, history));
    const report::RunRecord& part = parts[i];
    if (i == 0) {
      record = part;
      continue;
    }
    add_rows(record, part);
    if (part.request.budget != record.request.budget) record.request.budget.clear();
    record.cases_planned += part.cases_planned;
    record.seconds += part.seconds;
    record.interrupted = record.interrupted || part.interrupted;
    merge(record, part);
  }
  record.campaign.clear();  // campaigns side by side have no curve in common
  record.request.shard.clear();
  record.troubles.insert(record.troubles.end(), missing.begin(), missing.end());
  if (const auto names = report::brought_elsewhere(record); !names.empty()) {
    record.troubles.push_back(fmt::format("never asked: {}", fmt::join(names, ", ")));
  }
  close_record(record);
  if (!merged.flush()) throw MachineError(options.out + ": " + merged.trouble());
  write_out(options.out, record);
  fmt::print("{} campaign{}, {} cases, {}\n", histories.size(), histories.size() == 1 ? "" : "s",
             record.cases_run, report::verdict_line(record));
  for (const std::string& trouble : record.troubles) fmt::print("trouble: {}\n", trouble);
  fmt::print("results: {}/run.json, {}\n", options.out, views_in(options.out));
  return report::exit_status(record);
}

}  // namespace lossgate::ci
