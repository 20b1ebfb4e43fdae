// SPDX-License-Identifier: Apache-2.0
#include "ci/waivers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <ranges>
#include <set>
#include <sstream>

#include "ci/errors.h"
#include "corpora/files.h"

namespace lossgate::ci {
namespace {

constexpr std::string_view kBetween = " | ";  // a fingerprint has bars of its own, without blanks

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::vector<std::string> parts_of(std::string_view line) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t bar = line.find(kBetween);
    parts.push_back(trimmed(line.substr(0, bar)));
    if (bar == std::string_view::npos) return parts;
    line.remove_prefix(bar + kBetween.size());
  }
}

bool is_date(const std::string& text) {
  int year = 0, month = 0, day = 0, end = 0;
  if (text.size() != 10 ||
      std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3 || end != 10) {
    return false;
  }
  using namespace std::chrono;
  return year_month_day{std::chrono::year{year}, std::chrono::month(static_cast<unsigned>(month)),
                        std::chrono::day(static_cast<unsigned>(day))}
      .ok();
}

// Calls parse(parts, line number) for every line that says something.
template <class Parse>
void for_each_line(std::string_view text, Parse parse) {
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string content = trimmed(line);
    if (!content.empty() && content[0] != '#') parse(parts_of(content), number);
  }
}

/// Begins the line of a baseline's head that says how many cases the run had.
constexpr std::string_view kOfRun = "# Of a run of ";

[[noreturn]] void fail(const std::string& file, int line, const std::string& expected) {
  throw InputError(file + ":" + std::to_string(line) + ": " + expected);
}

}  // namespace

std::vector<Waiver> parse_waivers(std::string_view text, const std::string& file) {
  std::vector<Waiver> waivers;
  for_each_line(text, [&](const std::vector<std::string>& parts, int line) {
    if (parts.size() != 4) {
      fail(file, line, "expected 'fingerprint-or-pattern | reason | issue | expires YYYY-MM-DD'");
    }
    constexpr std::string_view kExpires = "expires ";
    Waiver waiver{
        .pattern = parts[0], .reason = parts[1], .issue = parts[2], .expires = {}, .line = line};
    if (parts[3].starts_with(kExpires)) waiver.expires = trimmed(parts[3].substr(kExpires.size()));
    if (!is_date(waiver.expires)) fail(file, line, "key 'expires': expected 'expires YYYY-MM-DD'");
    for (const auto& [key, value] :
         {std::pair("pattern", waiver.pattern), std::pair("reason", waiver.reason),
          std::pair("issue", waiver.issue)}) {
      if (value.empty()) fail(file, line, "key '" + std::string(key) + "': expected some text");
    }
    waivers.push_back(std::move(waiver));
  });
  return waivers;
}

std::vector<Accepted> parse_baseline(std::string_view text, const std::string& file) {
  std::vector<Accepted> accepted;
  for_each_line(text, [&](const std::vector<std::string>& parts, int line) {
    // A remark is as the finding had it, bars and all.
    if (parts.size() < 3) fail(file, line, "expected 'fingerprint | grade | remark'");
    if (!properties::parse_grade(parts[1])) {
      fail(file, line, "key 'grade': expected ordinary, rare or adversarial");
    }
    accepted.push_back({parts[0], parts[1], parts[2]});
  });
  return accepted;
}

std::int64_t cases_of_baseline(std::string_view text) {
  std::int64_t most = 0;  // of several baselines in one file the largest
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kOfRun)) continue;
    most = std::max<std::int64_t>(most, std::strtoll(line.c_str() + kOfRun.size(), nullptr, 10));
  }
  return most;
}

std::string baseline_text(const report::RunRecord& record) {
  std::set<std::string> lines;
  for (const report::RecordedFinding& finding : record.findings) {
    std::string remark = finding.reach.empty() ? finding.detail : finding.reach;
    std::ranges::replace(remark, '\n', ' ');
    if (remark.empty()) remark = "-";
    lines.insert(finding.fingerprint + " | " + finding.grade + " | " + remark + "\n");
  }
  std::string text =
      "# Findings accepted as they are: fingerprint | grade | remark. Only others make the gate "
      "red.\n" +
      std::string(kOfRun) + std::to_string(record.cases_run) + " cases.\n";
  for (const std::string& line : lines) text += line;
  return text;
}

bool matches(std::string_view pattern, std::string_view text) {
  // Greedy with one step back to the last star: linear for one star, never exponential.
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

namespace {

/// Whether the run asked what may give such a fingerprint, of which a pattern says as much as
/// stands before its first star: one file may serve runs of other properties, or of other subjects.
bool was_asked(const report::RunRecord& record, std::string_view pattern) {
  const auto known = [](const auto& entries, std::string_view name, auto member) {
    return std::ranges::find(entries, name, member) != entries.end();
  };
  std::size_t place = 0;
  for (const auto& range : std::views::split(pattern, '|')) {
    const std::string_view part(range.begin(), range.end());
    if (part.find('*') != part.npos) return true;
    const bool asked = place == 0   ? known(record.subjects, part, &report::Subject::loss)
                       : place == 2 ? known(record.subjects, part, &report::Subject::name)
                       : place == 3 ? known(record.properties, part, &report::PropertyEntry::name)
                                    : true;
    if (!asked) return false;
    ++place;
  }
  return true;
}

/// What the policy accepts and nothing that was asked needs.
void say_what_is_idle(report::RunRecord& record, const Policy& policy,
                      const std::set<std::string>& found) {
  record.baseline_cases = policy.baseline_cases;
  for (const Accepted& accepted : policy.baseline) {
    if (found.contains(accepted.fingerprint)) continue;
    if (was_asked(record, accepted.fingerprint)) record.vanished.push_back(accepted.fingerprint);
  }
  for (const Waiver& waiver : policy.waivers) {
    const auto matched = [&](const std::string& f) { return matches(waiver.pattern, f); };
    if (std::ranges::any_of(found, matched)) continue;
    if (was_asked(record, waiver.pattern)) record.idle_waivers.push_back(waiver.pattern);
  }
}

}  // namespace

Policy read_policy(properties::Grade fail_on, const std::string& waivers,
                   const std::string& baseline) {
  Policy policy;
  policy.fail_on = fail_on;
  policy.today = today();
  if (!waivers.empty()) policy.waivers = parse_waivers(corpora::read_text(waivers), waivers);
  if (baseline.empty()) return policy;
  const std::string text = corpora::read_text(baseline);
  policy.baseline = parse_baseline(text, baseline);
  policy.baseline_cases = cases_of_baseline(text);
  return policy;
}

void judge(report::RecordedFinding& finding, const Policy& policy) {
  const auto grade = properties::parse_grade(finding.grade).value_or(properties::Grade::ordinary);
  finding.state = grade <= policy.fail_on ? "red" : "tolerated";
  finding.state_reason = finding.state == "red" ? "" : "rarer than --fail-on asks for";
  for (const Accepted& accepted : policy.baseline) {
    const auto known = properties::parse_grade(accepted.grade);
    if (accepted.fingerprint != finding.fingerprint || grade < known) continue;
    finding.state = "known";
    finding.state_reason = "in the baseline";
  }
  for (const Waiver& waiver : policy.waivers) {
    if (finding.state == "known" || !matches(waiver.pattern, finding.fingerprint)) continue;
    const bool expired = waiver.expires < policy.today;
    if (expired && finding.state != "red") continue;
    finding.state = expired ? "expired waiver" : "waived";
    finding.state_reason =
        waiver.reason + " (" + waiver.issue + ", expires " + waiver.expires + ")";
    if (!expired) break;
  }
}

void judge(report::RunRecord& record, const Policy& policy) {
  std::set<std::string> found;
  for (report::RecordedFinding& finding : record.findings) {
    found.insert(finding.fingerprint);
    judge(finding, policy);
  }
  const report::Request& request = record.request;
  const bool filtered = !request.losses.empty() || !request.implementations.empty() ||
                        !request.properties.empty() || !request.dtypes.empty();
  const bool whole = !filtered && record.complete();
  if (whole && policy.names_idle) say_what_is_idle(record, policy, found);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &day);
  return text.data();
}

}  // namespace lossgate::ci
