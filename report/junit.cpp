// SPDX-License-Identifier: Apache-2.0
#include "report/junit.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

#include "report/acceptance.h"
#include "report/finding_text.h"
#include "report/plain_text.h"

namespace lossgate::report {
namespace {

using properties::Verdict;

struct Suite {
  std::string name, body = {};
  int tests = 0, failures = 0, skipped = 0;
  double seconds = 0.0;  ///< all its tests are asked at once: none has a time of its own

  void pass(const std::string& test) {
    tests += 1;
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\"/>\n", xml_escaped(name),
                        xml_escaped(test));
  }
  void child(const std::string& test, const std::string& element) {
    tests += 1;
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n{}    </testcase>\n",
                        xml_escaped(name), xml_escaped(test), element);
  }
  void fail(const std::string& test, const std::string& message, const std::string& text) {
    failures += 1;
    child(test, fmt::format("      <failure message=\"{}\">{}</failure>\n", xml_escaped(message),
                            xml_escaped(text)));
  }
  void skip(const std::string& test, const std::string& reason) {
    skipped += 1;
    child(test, fmt::format("      <skipped message=\"{}\"/>\n", xml_escaped(reason)));
  }
  std::string xml() const {
    return fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" "
        "time=\"{:.3f}\">\n{}  </testsuite>\n",
        xml_escaped(name), tests, failures, skipped, seconds, body);
  }
};

// A property of one subject over all dtypes: fails by its red findings, and does not pass with
// those that are accepted.
void add_property(Suite& suite, const RunRecord& record, const Subject& subject,
                  const PropertyEntry& property) {
  std::string failures, message, reason;
  std::set<std::string> accepted;
  for (const RecordedFinding& f : record.findings) {
    if (f.loss != subject.loss || f.implementation != subject.name || f.property != property.name ||
        !(f.red() || f.accepted())) {
      continue;
    }
    if (f.accepted()) {
      accepted.insert(fmt::format("accepted ({}): {}", f.state, f.state_reason));
      continue;
    }
    message += (message.empty() ? "" : "; ") + f.place + (f.detail.empty() ? "" : ": " + f.detail);
    failures += finding_text(f, property.statement, "");
  }
  std::int64_t asked = 0, answered = 0;
  for (const Cell& c : record.cells) {
    if (c.loss != subject.loss || c.implementation != subject.name || c.property != property.name) {
      continue;
    }
    asked += c.cases;
    answered += c.verdicts[static_cast<std::size_t>(Verdict::held)] +
                c.verdicts[static_cast<std::size_t>(Verdict::violated)];
    if (reason.empty() && !c.reasons.empty()) reason = c.reasons.begin()->first;
  }
  if (!failures.empty()) {
    suite.fail(property.name, message, failures);
  } else if (!accepted.empty()) {
    suite.skip(property.name, fmt::format("{}", fmt::join(accepted, "; ")));
  } else if (asked > 0 && answered == 0) {
    suite.skip(property.name, reason);
  } else if (asked > 0) {
    suite.pass(property.name);
  }
}

Suite kills(const RunRecord& record) {
  Suite suite{.name = "faulty variants"};
  for (const Kill& k : record.kills) {
    const std::string test = k.loss + " " + k.implementation + " violates " + k.property;
    if (k.killed) {
      suite.pass(test);
    } else {
      suite.fail(test, fmt::format("survived {} hostile cases", k.hostile_cases), k.trouble);
    }
  }
  return suite;
}

Suite expectations(const RunRecord& record) {
  Suite suite{.name = "regressions"};
  for (const Expectation& e : record.expectations) {
    const std::string test = e.file + " " + e.implementation + " violates " + e.property;
    if (e.met) {
      suite.pass(test);
    } else {
      suite.fail(test, "the case no longer shows this", e.verdict);
    }
  }
  return suite;
}

/// Nobody fails them, and whoever counts what is skipped sees that they are not asked.
Suite unfit(const RunRecord& record) {
  Suite suite{.name = "stored cases"};
  for (const UnfitCases& u : record.unfit) {
    suite.skip(fmt::format("{} {}: {}", u.corpus, u.loss, u.reason), unfit_line(u));
  }
  return suite;
}

/// Red is none of them; whoever counts what is skipped sees what to take out of the files.
Suite idle(const RunRecord& record) {
  Suite suite{.name = "waivers and baseline"};
  for (const Idle& each : idle_entries(record)) suite.skip(each.name, each.line());
  return suite;
}

Suite whole(const RunRecord& record) {
  Suite suite{.name = "the run"};
  if (record.complete()) {
    suite.pass("is whole");
  } else {
    suite.fail("is whole",
               fmt::format("{} of {} cases run", record.cases_run, record.cases_planned),
               fmt::format("{}", fmt::join(record.troubles, "\n")));
  }
  return suite;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  while (true) {
    const std::size_t end = text.find('\n');
    escaped += html(text.substr(0, end));
    if (end == std::string_view::npos) return escaped;
    escaped += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string junit(const RunRecord& record) {
  std::vector<Suite> suites;
  for (const Subject& subject : record.subjects) {
    if (subject.faulty()) continue;
    Suite suite{.name = subject.loss + "." + subject.name};
    for (const PropertyEntry& property : record.properties) {
      add_property(suite, record, subject, property);
    }
    for (const Timing& t : record.timings) {
      if (t.loss == subject.loss && t.implementation == subject.name) suite.seconds += t.seconds;
    }
    suites.push_back(std::move(suite));
  }
  suites.push_back(kills(record));
  suites.push_back(expectations(record));
  for (Suite& suite : std::array{unfit(record), idle(record)}) {
    if (suite.tests > 0) suites.push_back(std::move(suite));
  }
  suites.push_back(whole(record));
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  int tests = 0, failures = 0;
  for (const Suite& suite : suites) {
    tests += suite.tests;
    failures += suite.failures;
  }
  xml +=
      fmt::format("<testsuites name=\"lossgate\" tests=\"{}\" failures=\"{}\" time=\"{:.3f}\">\n",
                  tests, failures, record.seconds);
  for (const Suite& suite : suites) xml += suite.xml();
  return xml + "</testsuites>\n";
}

}  // namespace lossgate::report
