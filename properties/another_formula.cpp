// SPDX-License-Identifier: Apache-2.0
#include "properties/another_formula.h"

#include <cmath>

#include "properties/agreement.h"
#include "properties/causes.h"

namespace lossgate::properties {
namespace {

/// Far beyond what rounding leaves on benign data, and below what a term, a factor or a divisor
/// makes of it.
constexpr long double kOrderOne = 1.0L / 1024;

enum class Agreement { unknown, same, another };

Agreement agreement_on(const reference::Loss& loss, const impl::Implementation& implementation,
                       const Case& c) {
  if (implementation.unsupported && implementation.unsupported(c)) return Agreement::unknown;
  CaseStudy study(loss, c);
  if (study.refusal()) return Agreement::unknown;
  Evaluation evaluation(study, implementation);
  const LossResult& actual = evaluation.actual();
  const LossResult again = evaluation.call(c);
  if (malformed(study, actual) || malformed(study, again)) return Agreement::unknown;
  Agreement agreement = Agreement::unknown;
  study.for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        const OutputInfo& output = study.outputs()[o];
        if (output.kind == OutputKind::gradient) return;
        const long double value = actual.find(output.name)->at(i), formula = expected.v;
        const long double second = again.find(output.name)->at(i);
        if (!std::isfinite(value) || !std::isfinite(formula)) return;  // no number is no formula
        const long double scale = std::fmax(std::fabs(value), std::fabs(formula));
        if (scale == 0.0L) return;
        if (!(std::fabs(value - second) <= kOrderOne * scale)) return;  // nor what varies
        const bool far = std::fabs(value - formula) > kOrderOne * scale + expected.err;
        if (agreement != Agreement::another) agreement = far ? Agreement::another : Agreement::same;
      });
  return agreement;
}

}  // namespace

bool computes_another_formula(const reference::Loss& loss,
                              const impl::Implementation& implementation,
                              const std::vector<Case>& benign) {
  int same = 0, another = 0;
  for (const Case& c : benign) {
    const Agreement agreement = agreement_on(loss, implementation, c);
    same += agreement == Agreement::same;
    another += agreement == Agreement::another;
  }
  return another > same;
}

bool hangs_on_formula(const Property& property, const Violation& violation) {
  if (gives_no_result(violation.cause)) return false;
  if (property.precedence == Precedence::formula) return true;
  if (property.name == "gradient_matches_finite_difference") return true;
  return property.name == "zero_advantage_zero_gradient" && std::isfinite(violation.actual);
}

void name_another_formula(Finding& finding, Reduction reduction) {
  finding.violation.cause = "another formula";
  // Which other one is what the experiments say.
  const Cause* named = find_cause(finding.diagnosis.cause);
  if (finding.diagnosis.because.empty() || !named || named->symptom) {
    finding.diagnosis.cause = finding.violation.cause;
  }
  finding.violation.detail =
      "another formula than is declared, on ordinary data too, in the widest format that it takes";
  finding.fingerprint = finding.loss + "|" + std::string(name(reduction)) + "|" +
                        finding.implementation + "|" + finding.property + "|" +
                        finding.violation.cause + "|";
}

}  // namespace lossgate::properties
