// SPDX-License-Identifier: Apache-2.0
#include "ci/history.h"

#include <nlohmann/json.hpp>

#include "ci/errors.h"
#include "ci/journal.h"
#include "corpora/files.h"
#include "report/record_file.h"

namespace lossgate::ci {
namespace {

using Json = nlohmann::json;

void check_version(const Json& line, const std::string& file) {
  const auto& campaign = line.at("campaign");
  if (campaign.at("journal") == kJournalVersion) return;
  throw InputError(file + ": written by lossgate " + campaign.value("version", "unknown") +
                   ", whose journals have version " + campaign.at("journal").dump() +
                   ", expected " + std::to_string(kJournalVersion) +
                   "; go on with that lossgate, or say another --out");
}

/// A damaged number may be one that no integer holds, or that overflows a sum.
std::int64_t count_of(const Json& number) {
  const bool counts = number.is_number_integer() && number >= 0 && number <= report::kLargestCount;
  if (!counts) throw report::RecordError("no count");
  return number.get<std::int64_t>();
}

/// How far the campaign was when the clock was read.
report::CampaignPoint point_of(const History& history) {
  report::CampaignPoint point{.seconds = history.seconds};
  for (const auto& [arm, spent] : history.spent) {
    point.cases += spent.cases;
    point.features += std::ssize(spent.seen);
  }
  point.findings = std::ssize(history.findings.findings);
  return point;
}

void take_line(const Json& line, const std::string& file, History& history) {
  if (line.contains("campaign")) {
    check_version(line, file);
    history.begun = true;
    const Json& begun = line.at("campaign");
    if (begun.contains("seed")) history.seed = begun["seed"].get<std::uint64_t>();
  } else if (line.contains("spent")) {
    const Json& spent = line.at("spent");
    Spent& arm = history.spent[spent.at("arm").get<std::string>()];
    arm.cases += count_of(spent.at("cases"));
    arm.seconds += spent.at("seconds").get<double>();
  } else if (line.contains("kept")) {
    const Json& kept = line.at("kept");
    Spent& arm = history.spent[kept.at("arm").get<std::string>()];
    for (const Json& feature : kept.at("features")) {
      const std::int64_t number = count_of(feature);
      if (number >= std::int64_t{fuzz::kFeatures}) throw report::RecordError("no such feature");
      arm.seen.insert(static_cast<fuzz::Feature>(number));
    }
  } else if (line.contains("long")) {
    const Json& next = line.at("long");
    const bool all = next.at("from") == -1;
    history.spent[next.at("arm").get<std::string>()].long_from =
        all ? -1 : count_of(next.at("from"));
  } else if (line.contains("mended")) {
    const report::RunRecord told = report::from_json(line.at("mended").dump(), file);
    for (const report::Mended& mended : told.mended) mend(history.findings, mended);
  } else if (line.contains("again")) {
    replace(history.findings, line.at("again").get<std::string>(),
            report::from_json(line.at("found").dump(), file));
  } else if (line.contains("found")) {
    merge(history.findings, report::from_json(line.at("found").dump(), file));
  } else if (line.contains("elapsed")) {
    const std::int64_t memory = line.contains("memory_mib") ? count_of(line["memory_mib"]) : 0;
    history.seconds += line.at("elapsed").get<double>();
    history.points.push_back(point_of(history));
    history.points.back().memory_mib = memory;
  }
}

}  // namespace

void mend(report::RunRecord& findings, const report::Mended& mended) {
  std::erase_if(findings.findings, [&](const report::RecordedFinding& finding) {
    return finding.fingerprint == mended.fingerprint;
  });
  report::RunRecord part;
  part.mended.push_back(mended);
  merge(findings, part);
}

void replace(report::RunRecord& findings, const std::string& fingerprint,
             const report::RunRecord& now) {
  const auto is_it = [&](const auto& each) { return each.fingerprint == fingerprint; };
  std::erase_if(findings.findings, is_it);
  std::erase_if(findings.mended, is_it);
  merge(findings, now);
}

std::vector<report::CampaignPoint> thinned(const std::vector<report::CampaignPoint>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<report::CampaignPoint> some;
  for (std::size_t i = 1; i <= kMostPoints; ++i) {
    some.push_back(points[i * points.size() / kMostPoints - 1]);
  }
  return some;
}

History history_of(std::string_view journal, const std::string& file) {
  const JournalText text = read_journal(journal);
  History history;
  history.damaged = text.damaged;
  for (const std::string& line : text.lines) {
    try {
      take_line(Json::parse(line), file, history);
    } catch (const Json::exception&) {
      ++history.damaged;
    } catch (const report::RecordError&) {
      ++history.damaged;
    }
  }
  return history;
}

History read_history(const std::filesystem::path& journal) {
  if (!std::filesystem::exists(journal)) return {};
  return history_of(corpora::read_text(journal), journal.string());
}

}  // namespace lossgate::ci
