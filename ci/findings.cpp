// SPDX-License-Identifier: Apache-2.0
#include "ci/findings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ci/variant.h"
#include "corpora/case_id.h"
#include "corpora/text_codec.h"
#include "impl/external/process.h"
#include "impl/external/subject.h"
#include "regressions/replay.h"
#include "report/finding_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

// The case by which to see it again, named after its hash, and what the loss was told there.
void attach_case(report::RecordedFinding& recorded, const PlannedCase& planned) {
  Case c = planned.c;
  c.provenance.expect.clear();
  c.provenance.found_by = kFoundByGate;
  if (c.provenance.title.empty()) c.provenance.title = "a finding of the gate";
  // What somebody stored has a story of its own.
  if (std::string& story = c.provenance.story; planned.file.empty() || story.empty()) {
    const char* colon = story.empty() ? "" : "; ";
    story = recorded.property + " violated by " + recorded.implementation + colon + story;
  }
  recorded.case_id = corpora::case_id(c);
  recorded.case_file = "findings/" + recorded.case_id + ".case";
  recorded.case_text = corpora::encode(c, planned.loss->signature);
  recorded.repro = report::repro_line(recorded, "");
  recorded.options = report::options_of(planned.loss->signature, planned.c);
}

Dtype output_dtype(const PlannedCase& planned, const std::string& output) {
  const auto outputs = outputs_of(planned.loss->signature, planned.c);
  const auto at = std::ranges::find(outputs, output, &OutputInfo::name);
  return at == outputs.end() ? planned.dtype : at->dtype;
}

/// Points at the line where a non-finite number begins, rather than at the function, if somebody
/// can look inside.
void look_inside(report::RecordedFinding& recorded, const impl::Implementation& implementation,
                 const PlannedCase& planned, double actual) {
  const auto origin = origin_of(implementation, planned.loss->signature, planned.c, actual);
  if (!origin) return;
  recorded.source_file = origin->source.file;
  recorded.source_line = origin->source.line;
  recorded.source_text = origin->text;
}

/// What the implementation gives on the undivided case, where that is little enough to look at.
void keep_outputs(report::RecordedFinding& recorded, const impl::Implementation& implementation,
                  const PlannedCase& planned) {
  constexpr std::int64_t kMostEntries = 128;
  std::int64_t entries = 0;
  for (const OutputInfo& info : outputs_of(planned.loss->signature, planned.c)) {
    entries += element_count(info.extents);
  }
  if (entries > kMostEntries) return;
  Case whole = planned.c;
  whole.split = {};
  LossResult result;
  try {
    result = implementation.evaluate(planned.loss->signature, whole);
  } catch (const ImplementationThrew&) {  // the finding stands without it
  }
  for (const Output& output : result.outputs) {
    auto& kept = recorded.outputs.emplace_back();
    kept.name = output.name;
    kept.extents = output.tensor.extents;
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      kept.values.push_back(output.tensor.at(i));
    }
  }
}

constexpr const char* kAsMet = "as it was met, not made simple";

void add_remark(std::string& text, const std::string& remark) {
  text += (text.empty() ? "" : "; ") + remark;
}

report::RecordedFinding recorded_without_calls(const properties::Finding& finding,
                                               const impl::Implementation& implementation,
                                               const PlannedCase& planned, std::int64_t ordinal) {
  const properties::Violation& violation = finding.violation;
  report::RecordedFinding recorded = counted(finding, ordinal);
  recorded.reach = finding.reach;
  recorded.detail = violation.detail;
  if (const std::string because = report::because_text(finding.diagnosis); !because.empty()) {
    add_remark(recorded.detail, because);
  }
  recorded.source_file = implementation.source.file;
  recorded.source_line = implementation.source.line;
  recorded.source_flags = implementation.source.flags;
  recorded.place = report::place_text(violation.place);
  recorded.inputs = report::inputs_at(planned.loss->signature, planned.c, violation.place);
  if (violation.has_numbers()) {
    const Dtype dtype = output_dtype(planned, violation.place.output);
    recorded.actual = report::with_bits(dtype, violation.actual);
    recorded.expected = report::decimal(violation.expected);
    recorded.ulp_error = regressions::ulp_error(dtype, violation.actual, violation.expected);
    recorded.allclose = regressions::allclose(violation.actual, violation.expected);
  }
  recorded.allowed = violation.allowed;
  recorded.half_width = violation.half_width;
  recorded.error_ratio = violation.error_ratio;
  attach_case(recorded, planned);
  return recorded;
}

}  // namespace

std::optional<impl::Origin> origin_of(const impl::Implementation& implementation,
                                      const LossSignature& signature, Case c, double actual) {
  if (!implementation.origin || std::isfinite(actual)) return std::nullopt;
  c.split = {};
  try {
    return implementation.origin(signature, c);
  } catch (const impl::ProcessEnded&) {  // a finding stands without it
  } catch (const impl::ProcessHung&) {
  } catch (const impl::SubjectError&) {
  }
  return std::nullopt;
}

report::RecordedFinding counted(const properties::Finding& finding, std::int64_t ordinal) {
  report::RecordedFinding counted;
  counted.fingerprint = finding.fingerprint;
  counted.loss = finding.loss;
  counted.implementation = finding.implementation;
  counted.property = finding.property;
  counted.dtype = finding.dtype;
  counted.grade = name(finding.grade);
  counted.cause = finding.diagnosis.cause;
  counted.confidence = finding.diagnosis.confidence;
  counted.ordinal = ordinal;
  return counted;
}

report::RecordedFinding recorded(const properties::Finding& finding,
                                 const impl::Implementation& implementation,
                                 const PlannedCase& planned, std::int64_t ordinal) {
  auto recorded = recorded_without_calls(finding, implementation, planned, ordinal);
  if (!finding.violation.place.output.empty()) {
    look_inside(recorded, implementation, planned, finding.violation.actual);
    keep_outputs(recorded, implementation, planned);
  }
  return recorded;
}

PlannedCase as_met(PlannedCase planned) {
  add_remark(planned.c.provenance.story, kAsMet);
  return planned;
}

report::RecordedFinding recorded_as_met(properties::Finding finding,
                                        const impl::Implementation& implementation,
                                        const PlannedCase& planned, std::int64_t ordinal) {
  add_remark(finding.violation.detail, kAsMet);
  return recorded_without_calls(finding, implementation, as_met(planned), ordinal);
}

report::RecordedFinding recorded_without_cause(properties::Finding finding,
                                               const impl::Implementation& implementation,
                                               const PlannedCase& planned, std::int64_t ordinal) {
  auto recorded = recorded_as_met(std::move(finding), implementation, planned, ordinal);
  recorded.no_experiment = "--no-causes";
  return recorded;
}

std::string cause_of_failure(const std::string& how) {
  return how.substr(0, how.find_first_of(":;\n"));
}

std::string failure_fingerprint(const std::string& loss, const std::string& implementation,
                                const std::string& property, const std::string& how) {
  return loss + "||" + implementation + "|" + property + "|" + cause_of_failure(how) + "|call";
}

report::RecordedFinding recorded_failure(const PlannedCase& planned, std::int64_t ordinal,
                                         const impl::Implementation& implementation,
                                         const std::string& property, const std::string& cause) {
  report::RecordedFinding recorded;
  recorded.loss = planned.c.spec.loss;
  recorded.implementation = implementation.name;
  recorded.source_file = implementation.source.file;
  recorded.source_line = implementation.source.line;
  recorded.source_flags = implementation.source.flags;
  recorded.property = property;
  recorded.dtype = name(planned.dtype);
  // It takes everything with it that runs in its process, and whoever waits for that.
  recorded.grade = name(properties::Grade::ordinary);
  recorded.ordinal = ordinal;
  recorded.place = "the call";
  recorded.detail = cause;
  recorded.cause = cause_of_failure(cause);
  recorded.fingerprint = failure_fingerprint(recorded.loss, implementation.name, property, cause);
  attach_case(recorded, planned);
  return recorded;
}

}  // namespace lossgate::ci
