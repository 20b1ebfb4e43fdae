// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "report/record_fields.h"
#include "report/run_record.h"

/// Records for the tests of this folder.
namespace lossgate::report {

inline RecordedFinding finding_of(const std::string& fingerprint, const std::string& grade,
                                  std::int64_t ordinal) {
  RecordedFinding finding;
  finding.fingerprint = fingerprint;
  finding.loss = "grpo";
  finding.implementation = "one";
  finding.property = "finite_backward";
  finding.dtype = "f32";
  finding.grade = grade;
  finding.ordinal = ordinal;
  finding.state = "red";
  finding.place = "gradient.log_prob[0, 1]";
  finding.detail = "it is <not> \"finite\" & \x01";
  finding.source_file = "impl/one.cpp";
  finding.inputs = {"log_prob -1 (0xbf800000)"};
  finding.options = {"reduction token_mean", "clip_low 0.2"};
  finding.actual = "nan (0x7fc00000)";
  finding.expected = "0";
  finding.error_ratio = INFINITY;
  finding.cause = "unbounded exponent";
  finding.reach = "fails from log-ratio 88.73 in f32";
  finding.case_file = "findings/0123456789abcdef.case";
  finding.repro = "lossgate replay findings/0123456789abcdef.case --impl one";
  return finding;
}

/// One implementation, one property, three cases, one finding.
inline RunRecord record_of() {
  RunRecord record;
  record.version = "0.1.0";
  record.request.profile = "hostile";
  record.cases_planned = record.cases_run = 3;
  record.properties = {{"finite_backward", "core", "Gradients are finite."}};
  record.subjects.emplace_back();
  record.subjects[0].loss = "grpo";
  record.subjects[0].name = "one";
  Cell& row = cell(record, "grpo", "one", "f32", "finite_backward");
  tally(row, properties::held(), 0);
  tally(row, properties::vacuous("no trigger"), 1);
  properties::Violation violation;
  violation.error_ratio = INFINITY;
  tally(row, properties::violated(violation), 2);
  add_finding(record, finding_of("f", "rare", 2));
  return record;
}

/// The same with so many findings, of the length that real ones have.
inline RunRecord record_of(int findings) {
  RunRecord record = record_of();
  record.findings.clear();
  for (int i = 0; i < findings; ++i) {
    RecordedFinding finding =
        finding_of("grpo|token_mean;kl|one|finite_backward|unbounded exponent|" +
                       std::to_string(i) + "|gradient.log_prob@valid",
                   "rare", i);
    finding.source_line = 100 + i % 50;
    finding.source_text =
        "exp(100 (sub)) = inf at losses.py:5: ratio = torch.exp(log_probs - old_log_probs)";
    finding.detail = "the formula's value and every magnitude on the way to it fit";
    finding.place += " (sequence 0, token 1, valid)";
    finding.inputs = {"log_prob 0 (0x00000000)", "old_log_prob -100 (0xc2c80000)",
                      "advantage 0 (0x00000000)", "mask 1"};
    finding.repro = "lossgate replay " + finding.case_file + " --impl one";
    record.findings.push_back(finding);
  }
  return record;
}

template <class T>
concept RecordPart = requires(T& value) {
  fields(value, [](const char*, auto&) {});
};

/// Every member that is text, and one row of every list, says `text`.
template <class T>
void fill_with(T& value, const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = text;
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::int64_t>>) {
    value = {{text, 1}};
  } else if constexpr (RecordPart<T>) {
    fields(value, [&](const char*, auto& member) { fill_with(member, text); });
  } else if constexpr (requires {
                         value.emplace_back();
                         value.clear();
                       }) {
    if (value.empty()) value.emplace_back();
    for (auto& row : value) fill_with(row, text);
  }
}

/// Texts that try to be more than text, 200 and more.
inline std::vector<std::string> hostile_texts() {
  const std::vector<std::string> seeds = {
      "<script>window.ran = 1</script>",
      "</script><script>window.ran = 1</script>",
      "<img src=x onerror=\"window.ran = 1\">",
      "\" onmouseover=\"window.ran = 1",
      "' onfocus='window.ran = 1' autofocus='",
      "<svg onload=window.ran=1>",
      "<!-- <script>",
      "--></style></title><script>window.ran = 1</script>",
      "]]><b>",
      "&lt;b&gt;&amp;&#60;b&#62;",
      "javascript:window.ran=1",
      "<a href=\"javascript:window.ran=1\">x</a>",
      "{{7*7}}${7*7}",
      "\\u003cscript\\u003e",
      "<iframe srcdoc=\"<script>parent.ran=1</script>\"></iframe>",
      "<base href=\"http://example.invalid/\">",
      "<style>*{display:none}</style>",
      "<meta http-equiv=refresh content=\"0;url=http://example.invalid/\">",
      "x`y``z\n```\n# heading\n| a | b |\n",
      "[link](javascript:window.ran=1) @everyone #1",
      "\xE2\x80\xAE txt.exe \xE2\x81\xA6 reversed",
      "\xEF\xBB\xBF byte order",
      "\xFF\xFE\xC0\x80",
      std::string("nul \0 inside", 12),
      "\x1b[31mred\x1b[0m",
      "\xE2\x80\xA8line separator",
      "%s%n%x {0} {} @LOSSGATE_STYLE@",
      "../../../../etc/passwd",
      "C:\\new\\table",
      "\xF0\x9F\x92\xA3\xE2\x80\x8D\xF0\x9F\x94\xA5",
      "a\tb\rc\vd",
      "' OR 1=1 --"};
  std::vector<std::string> texts;
  for (const std::string& seed : seeds) {
    for (const std::string& before : {"", "\"", "'>", "\">", "--><", "\\", "}}"}) {
      texts.push_back(before + seed);
    }
  }
  texts.push_back(std::string(std::size_t{1} << 20, '<'));
  return texts;
}

}  // namespace lossgate::report
