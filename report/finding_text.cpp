// SPDX-License-Identifier: Apache-2.0
#include "report/finding_text.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "properties/causes.h"
#include "properties/diagnosis.h"
#include "properties/property.h"
#include "report/shell_word.h"
#include "report/value_text.h"

namespace lossgate::report {
namespace {

/// How wide a text is behind its label, and how long: a finding never scrolls away.
constexpr std::size_t kWidth = 98, kMostLines = 6;

// One line, to be copied whole.
std::string whole_line(std::string_view label, std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  }
  return fmt::format("  {:<10}{}\n", label, text);
}

// Cut between characters where it would be longer.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

// To be read: broken at spaces, so that no terminal cuts a word.
std::string lines(std::string_view label, std::string text) {
  std::string all;
  for (std::string& part : wrapped(shortened(std::move(text), kWidth * kMostLines), kWidth)) {
    all += whole_line(label, std::move(part));
    label = "";
  }
  return all;
}

constexpr std::pair<std::string_view, std::string_view> kFixes[] = {
    {"finite_forward",
     "bound the exponent, or use the stable form; select valid positions before the maths"},
    {"finite_backward",
     "replace masked data before the maths (where, not a product): 0 x inf in the backward is NaN"},
    {"masked_positions_inert", "select with where before the first operation, not after the last"},
    {"no_laundering", "no nan_to_num at valid positions: raise, or let the NaN show"},
    {"reference_agreement", "widen before the first subtraction; use the stable form; sum in f32"},
    {"split_invariance",
     "divide by the whole step's count, of tokens or of sequences, and sum over micro-batches and "
     "ranks"},
    {"padding_invariance", "count valid positions, never positions"},
    {"permutation_invariance", "index rows by their own data, never by their place in the batch"},
    {"empty_is_zero", "give the divisor a floor of 1 where nothing is valid"},
    {"inputs_not_mutated", "scale a copy: an in-place normalisation runs twice"},
    {"determinism", "no atomics or uninitialised memory in the reduction"},
    {"grad_mode_invariance",
     "let requires_grad and is_grad_enabled() decide what is kept, never what is returned"},
    {"zero_advantage_zero_gradient",
     "clamp the log-ratio before exp, so that 0 x inf cannot arise"},
    {"error_on_invalid", "check labels, masks and options before they are read"},
    {"bounds_hold", "use the form that keeps its sign: expm1(x) - x, not exp(x) - x - 1"},
    {"on_policy_identity", "form the log-ratio by one subtraction of equal values"},
    {"path_parity", "compare both paths with the reference; the farther one is wrong"},
    {"gradient_matches_finite_difference", "derive the backward again from the forward"},
    {"finite_for_every_finite_input", "clamp what the exponential and the products are given"},
    {"does_not_crash",
     "check sizes and indices before memory is read; raise or return an error, and never end the "
     "process"},
    {"does_not_hang", "bound every loop by the input's size"},
};

std::string_view found(std::span<const std::pair<std::string_view, std::string_view>> table,
                       std::string_view key) {
  for (const auto& [name, fix] : table) {
    if (name == key) return fix;
  }
  return "";
}

// Where its case lies; empty where it has none.
std::string case_path(const RecordedFinding& finding, std::string_view folder) {
  if (folder.empty() || finding.case_file.empty()) return finding.case_file;
  return fmt::format("{}/{}", folder, finding.case_file);
}

}  // namespace

std::string_view usual_fix(std::string_view property, std::string_view cause) {
  const properties::Cause* named = properties::find_cause(cause);
  if (named && !named->repair.empty()) return named->repair;
  if (const std::string_view fix = found(kFixes, property); !fix.empty()) return fix;
  return "replay the case and compare each stage with the reference";
}

std::string_view fix_label(std::string_view property, std::string_view cause, double confidence) {
  const properties::Property* asked = properties::find_property(property);
  const bool open = asked && confidence == 0.0 && properties::is_open(*asked, cause);
  return open ? kToTry : "usual fix";
}

std::string cause_text(std::string_view property, std::string_view cause, double confidence) {
  const bool open = fix_label(property, cause, confidence) == kToTry;
  return fmt::format("{}{}", cause, open ? "; no experiment says more" : "");
}

std::string_view fix_label(const RecordedFinding& finding) {
  return fix_label(finding.property, finding.cause, finding.confidence);
}

std::string cause_text(const RecordedFinding& finding) {
  if (finding.no_experiment.empty() || finding.confidence > 0.0) {
    return cause_text(finding.property, finding.cause, finding.confidence);
  }
  return fmt::format("{}; no experiment was made: {}", finding.cause, finding.no_experiment);
}

std::string because_text(const properties::Diagnosis& diagnosis) {
  if (diagnosis.because.empty()) return "";
  return fmt::format("{} (confidence {:.2g})", diagnosis.because, diagnosis.confidence);
}

std::string met_line(const RecordedFinding& finding, std::string_view folder) {
  return fmt::format("{} VIOLATED by {} ({}, {}; {}{}){}{}", finding.property,
                     finding.implementation, finding.loss, finding.dtype, finding.cause,
                     finding.red() ? "" : "; " + finding.state,
                     finding.case_file.empty() ? "" : ": ", case_path(finding, folder));
}

std::string mended_line(const Mended& mended) {
  return fmt::format("mended: {}: {} when asked again ({})", mended.fingerprint, mended.reason,
                     mended.case_file);
}

std::string unfit_line(const UnfitCases& unfit) {
  return fmt::format("{} stored case{} of {} in {} fit{} no subject: {}", unfit.cases,
                     unfit.cases == 1 ? "" : "s", unfit.loss, unfit.corpus,
                     unfit.cases == 1 ? "s" : "", unfit.reason);
}

std::string repro_line(const RecordedFinding& finding, std::string_view folder) {
  if (finding.case_file.empty()) return finding.repro;
  // A replay asks no property of the run, such as does_not_crash: it shows what the call does.
  const bool asked = properties::find_property(finding.property) != nullptr;
  return fmt::format("lossgate replay {}{}{} --impl {}{}", shell_word(case_path(finding, folder)),
                     finding.source_flags.empty() ? "" : " ", finding.source_flags,
                     shell_word(finding.implementation),
                     asked ? " --property " + finding.property : "");
}

std::string branch_text(double half_width, double allowed) {
  if (!(half_width > allowed)) return "";
  return fmt::format(", or up to {} from it, as rounding decides", brief(half_width));
}

std::string expected_text(const RecordedFinding& finding) {
  if (finding.expected != "nan") {
    return finding.expected + branch_text(finding.half_width, finding.allowed);
  }
  const std::string_view actual = finding.actual;
  const bool is_number = actual.find("nan") == actual.npos && actual.find("inf") == actual.npos;
  return is_number ? "no number" : "a number";
}

std::string finding_text(const RecordedFinding& f, std::string_view statement,
                         std::string_view folder) {
  std::string text =
      fmt::format("{} VIOLATED by {} ({}, {}; {} case{})\n", f.property, f.implementation, f.loss,
                  f.dtype, f.count, f.count == 1 ? "" : "s");
  text += lines("", std::string(statement));
  if (!f.source_file.empty()) {
    // Without a guilty line all that is known is where the function begins.
    text += f.source_text.empty()
                ? whole_line("function", fmt::format("{}:{}", f.source_file, f.source_line))
                : whole_line("code", shortened(f.source_text, kWidth * 2));
  }
  text += lines("place", f.place + (f.detail.empty() ? "" : ": " + f.detail));
  text += lines("inputs", fmt::format("{}", fmt::join(f.inputs, ", ")));
  text += lines("options", fmt::format("{}", fmt::join(f.options, ", ")));
  if (!f.actual.empty()) {
    std::string numbers = f.actual + ", expected " + expected_text(f);
    if (f.expected != "nan") {
      numbers += fmt::format(", allowed difference {}, error ratio {} (up to {} holds)",
                             brief(f.allowed), brief(f.error_ratio), reference::kThreshold);
    }
    text += lines("actual", numbers);
  }
  text += lines("grade", f.grade + (f.reach.empty() ? "" : "; " + f.reach));
  if (!f.cause.empty()) text += lines("cause", cause_text(f));
  text += lines(fix_label(f), std::string(usual_fix(f.property, f.cause)));
  text += whole_line("replay", folder.empty() ? f.repro : repro_line(f, folder));
  if (!f.state_reason.empty()) text += lines(f.red() ? "expired" : f.state, f.state_reason);
  if (f.red()) {
    text += whole_line("to accept", f.fingerprint + " | reason | issue | expires YYYY-MM-DD");
  }
  return text;
}

}  // namespace lossgate::report
