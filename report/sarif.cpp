// SPDX-License-Identifier: Apache-2.0
#include "report/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/board.h"
#include "report/finding_text.h"
#include "report/plain_text.h"
#include "report/shell_word.h"

namespace lossgate::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

Json text(const std::string& words) { return {{"text", words}}; }

Json rule(const PropertyEntry& property) {
  const std::string help =
      plain(property.statement) + " Usual fix: " + std::string(usual_fix(property.name)) + ".";
  return {{"id", plain(property.name)},
          {"shortDescription", text(plain(property.statement))},
          {"fullDescription", text(plain(property.statement))},
          {"help", text(help)},
          {"defaultConfiguration", {{"level", "error"}}},
          {"properties", {{"tags", {"correctness", plain(property.tier)}}}}};
}

// A path as a reference of a URI: what may not stand there is written by its bytes.
std::string uri(const std::string& path) {
  constexpr std::string_view kAllowed = "-._~/!$&'()*+,;=@";
  std::string result;
  for (const char letter : path) {
    const bool plain_letter = (letter >= 'a' && letter <= 'z') ||
                              (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    if (plain_letter || kAllowed.find(letter) != std::string_view::npos) {
      result += letter;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return result;
}

// Files are named from the folder of the lossgate.toml on, which the flags of a replay tell.
std::string path_of(const RecordedFinding& f) {
  namespace fs = std::filesystem;
  constexpr std::string_view kFlag = "--config ";
  const std::size_t at = f.source_flags.find(kFlag);
  if (at == std::string::npos) return f.source_file;
  const std::string config = first_shell_word(f.source_flags.substr(at + kFlag.size()));
  const fs::path below = (fs::path(config).parent_path() / f.source_file).lexically_normal();
  const bool outside = below.is_absolute() || (!below.empty() && *below.begin() == "..");
  return outside ? f.source_file : below.generic_string();
}

Json location(const RecordedFinding& f) {
  Json physical = {{"artifactLocation", {{"uri", uri(path_of(f))}, {"uriBaseId", "SRCROOT"}}}};
  if (f.source_line > 0) physical["region"] = {{"startLine", f.source_line}};
  return {{"physicalLocation", physical},
          {"logicalLocations", {{{"name", plain(f.implementation)}, {"kind", "function"}}}}};
}

// The label of a fix begins a sentence here.
std::string fix_sentence(const RecordedFinding& f) {
  const bool guess = fix_label(f) == kToTry;
  return fmt::format("{}: {}.", guess ? "To try" : "Usual fix", usual_fix(f.property, f.cause));
}

std::string message(const RecordedFinding& f) {
  std::string words = plain(fmt::format("{} ({}, {}): {}{}{}", f.implementation, f.loss, f.dtype,
                                        f.place, f.detail.empty() ? "" : ": ", f.detail));
  if (!f.actual.empty()) {
    words += fmt::format("; actual {}, expected {}", plain(f.actual), plain(expected_text(f)));
  }
  if (!f.options.empty()) {
    words += "; options " + plain(fmt::format("{}", fmt::join(f.options, ", ")));
  }
  if (!f.source_text.empty()) words += "; " + plain(f.source_text);
  if (!f.cause.empty()) words += ". Cause: " + plain(cause_text(f));
  return words + ". " + fix_sentence(f) + " Replay: " + plain(f.repro);
}

Json result(const RecordedFinding& f, const std::vector<PropertyEntry>& properties) {
  const auto rule_at = std::ranges::find(properties, f.property, &PropertyEntry::name);
  Json row = {{"ruleId", plain(f.property)}};
  if (rule_at != properties.end()) row["ruleIndex"] = rule_at - properties.begin();
  row["level"] = f.red() ? "error" : "note";
  row["message"] = text(message(f));
  if (!f.source_file.empty()) row["locations"] = Json::array({location(f)});
  row["partialFingerprints"] = {{"lossgate/v1", anchor(f.fingerprint)}};
  row["occurrenceCount"] = std::max<std::int64_t>(1, f.count);
  if (f.state == "known" || f.state == "waived") {
    Json suppression = {{"kind", "external"}};
    if (!f.state_reason.empty()) suppression["justification"] = plain(f.state_reason);
    row["suppressions"] = Json::array({suppression});
  }
  row["properties"] = {{"fingerprint", plain(f.fingerprint)},
                       {"grade", plain(f.grade)},
                       {"cause", plain(f.cause)},
                       {"reach", plain(f.reach)},
                       {"case", plain(f.case_file)},
                       {"state", plain(f.state)}};
  Json& options = row["properties"]["options"] = Json::array();
  for (const std::string& option : f.options) options.push_back(plain(option));
  if (std::isfinite(f.error_ratio)) row["properties"]["errorRatio"] = f.error_ratio;
  return row;
}

}  // namespace

std::string sarif(const RunRecord& record) {
  Json rules = Json::array(), results = Json::array(), notices = Json::array();
  for (const PropertyEntry& property : record.properties) rules.push_back(rule(property));
  for (const RecordedFinding& f : record.findings) results.push_back(result(f, record.properties));
  for (const std::string& trouble : record.troubles) {
    notices.push_back({{"level", "error"}, {"message", text(plain(trouble))}});
  }
  Json invocation = {{"executionSuccessful", record.complete()},
                     {"toolExecutionNotifications", notices},
                     {"properties", {{"verdict", plain(verdict_line(record))}}}};
  Json run = {
      {"tool",
       {{"driver", {{"name", "lossgate"}, {"version", plain(record.version)}, {"rules", rules}}}}},
      {"invocations", Json::array({invocation})},
      {"originalUriBaseIds",
       {{"SRCROOT", {{"description", text("The folder in which the gate was run.")}}}}},
      {"columnKind", "utf16CodeUnits"},
      {"results", results}};
  const Json log = {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
  return log.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lossgate::report
