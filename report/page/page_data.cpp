// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/page/parts.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity; a chart puts what is no number where infinity stands.
Json ratio_of(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }

Json ratios(const RunRecord& record) {
  Json rows = Json::array();
  for (const Cell& c : record.cells) {
    if (c.worst_case.empty()) continue;
    rows.push_back({plain(c.loss), plain(c.implementation), plain(c.dtype), plain(c.property),
                    ratio_of(c.worst_ratio), plain(c.worst_case)});
  }
  return rows;
}

Json findings(const PageSource& source) {
  Json rows = Json::array();
  for (const RecordedFinding* f : cards(source.record())) {
    rows.push_back({plain(f->state), plain(f->property), plain(f->implementation), plain(f->loss),
                    plain(f->grade), f->count, ratio_of(f->error_ratio)});
  }
  return rows;
}

Json kills(const RunRecord& record) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const Kill& k : record.kills) {
    if (k.killed && !k.by_long_case()) counts[k.hostile_cases] += 1;
  }
  Json rows = Json::array();
  for (const auto& [cases, count] : counts) rows.push_back({cases, count});
  return rows;
}

Json timings(const RunRecord& record) {
  Json rows = Json::array();
  for (const Timing& t : record.timings) {
    rows.push_back({plain(t.loss), plain(t.implementation), plain(t.dtype), t.calls, t.seconds});
  }
  return rows;
}

Json splits(const RunRecord& record) {
  Json rows = Json::array();
  for (const SplitErrors& s : record.splits) {
    rows.push_back({plain(s.implementation), plain(s.loss), plain(s.dtype), split_counts(s),
                    ratio_of(s.worst), plain(s.worst_split, 120)});
  }
  return {{"decades", split_decades()}, {"rows", rows}};
}

Json campaign(const RunRecord& record) {
  Json points = Json::array();
  for (const CampaignPoint& p : record.campaign) {
    points.push_back({p.seconds, p.cases, p.features, p.findings, p.memory_mib});
  }
  return points;
}

}  // namespace

std::string page_data(const PageSource& source) {
  const RunRecord& record = source.record();
  Json data;
  data["findings"] = findings(source);
  data["ratios"] = ratios(record);
  data["most_allowed"] = kMostAllowed;
  data["kills"] = kills(record);
  data["timings"] = timings(record);
  data["splits"] = splits(record);
  data["campaign"] = campaign(record);
  // ASCII alone, and nothing that could end the element that it stands in.
  std::string text;
  for (const char letter : data.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    text += letter == '<'   ? "\\u003c"
            : letter == '>' ? "\\u003e"
            : letter == '&' ? "\\u0026"
                            : std::string(1, letter);
  }
  return text;
}

}  // namespace lossgate::report
