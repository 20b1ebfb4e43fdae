// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/diagnosis.h"
#include "properties/symptoms.h"

namespace lossgate::properties {
namespace {

/// Where the way from the tame twin begins, as a share of it, and how often it is halved on a
/// logarithmic scale: the reach is known to about 1 part in 80,000, be it 20 or 3e38.
const double kFirstShare = std::exp2(-300.0);
constexpr int kHalvings = 24;

/// The case with `axis.field` moved towards its tame twin: 0 is there, 1 is where it was.
Case tamed(const Case& base, const ReachAxis& axis, double share) {
  Case c = base;
  Tensor& field = c.batch.at(axis.field);
  const Tensor* twin = axis.towards.empty() ? nullptr : &base.batch.at(axis.towards);
  for (std::int64_t i = 0; i < field.size(); ++i) {
    const double target = twin ? twin->at(i) : 0.0;
    const double far = field.at(i) - target;
    if (std::isfinite(far)) field.set(i, target + share * far);
  }
  return c;
}

/// The largest finite distance from the twin.
double distance(const Case& c, const ReachAxis& axis) {
  const Tensor& field = c.batch.at(axis.field);
  const Tensor* twin = axis.towards.empty() ? nullptr : &c.batch.at(axis.towards);
  double largest = 0.0;
  for (std::int64_t i = 0; i < field.size(); ++i) {
    const double far = std::fabs(field.at(i) - (twin ? twin->at(i) : 0.0));
    if (std::isfinite(far)) largest = std::max(largest, far);
  }
  return largest;
}

class Prober {
 public:
  Prober(const CaseStudy& study, const impl::Implementation& implementation,
         const Property& property, const std::string& cause)
      : study_(study), implementation_(implementation), property_(property), cause_(cause) {}

  /// Whether the same property is violated for the same cause.
  bool fails(const Case& c) const {
    if (implementation_.unsupported && implementation_.unsupported(c)) return false;
    CaseStudy other(study_.loss(), c);
    Evaluation evaluation(other, implementation_);
    evaluation.tells_bias = false;
    const Outcome outcome = property_.check(evaluation);
    return outcome.violation && outcome.violation->cause == cause_;
  }

 private:
  const CaseStudy& study_;
  const impl::Implementation& implementation_;
  const Property& property_;
  const std::string& cause_;
};

/// The case with plain zeros where the mask silences non-finite data; nothing if there is none.
std::optional<Case> with_plain_padding(const CaseStudy& study) {
  return zeroed_behind_mask(study, study.split(), [](const Field& field, double value) {
    // What a contract names is what callers do leave there.
    const bool named = field.masked == Masked::minus_infinity && value == -HUGE_VAL;
    return !named && !std::isfinite(value);
  });
}

Grade grade_of(const CaseStudy& study, const Prober& prober, bool benign) {
  if (benign) return Grade::ordinary;
  if (study.refusal()) return Grade::rare;
  const auto plain = with_plain_padding(study);
  if (!plain || prober.fails(*plain)) return Grade::rare;
  // What comes and goes is not made by what lies behind the mask.
  return prober.fails(study.split()) ? Grade::adversarial : Grade::rare;
}

/// What an option's value says of the class of a case: choices and flags that differ from the
/// default, and bounds that are off. Nothing of a number.
std::string class_of(const Option& option, const OptionValue* value) {
  if (!value || *value == option.standard) return "";
  if (std::holds_alternative<None>(*value)) return ";" + option.name + "=none";
  if (option.kind == Option::Kind::flag) return ";" + option.name;
  if (option.kind != Option::Kind::choice) return "";
  return ";" + option.name + "=" + std::get<std::string>(*value);
}

/// The reduction, and the class of each option without which the violation goes.
std::string option_class(const CaseStudy& study, const Prober& prober) {
  Case c = study.split();
  std::string text(name(c.spec.reduction));
  for (const Option& option : study.signature().options) {
    const std::string needed = class_of(option, c.spec.find(option.name));
    if (needed.empty() || !option.follows.empty()) continue;
    Case plain = c;
    plain.spec.set(option.name, option.standard);
    follow(study.signature(), plain.spec);
    if (prober.fails(plain)) {
      c = std::move(plain);
    } else {
      text += needed;
    }
  }
  return text;
}

std::string fingerprint_of(const Finding& finding, const std::string& options) {
  return finding.loss + "|" + options + "|" + finding.implementation + "|" + finding.property +
         "|" + finding.violation.cause + "|" + kind_of_place(finding.violation.place);
}

}  // namespace

Finding bare_finding(const CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation) {
  Finding finding{.property = property.name,
                  .implementation = implementation.name,
                  .loss = study.signature().id,
                  .dtype = std::string(name(float_dtype(study.signature(), study.whole()))),
                  .violation = violation,
                  .reach = "",
                  .grade = Grade::rare,
                  .fingerprint = "",
                  .diagnosis = {.cause = violation.cause, .confidence = 0.0, .because = ""}};
  finding.fingerprint = fingerprint_of(finding, std::string(name(study.whole().spec.reduction)));
  return finding;
}

Finding name_finding(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation, bool benign) {
  const Prober prober(study, implementation, property, violation.cause);
  Finding finding = bare_finding(study, implementation, property, violation);
  finding.grade = grade_of(study, prober, benign);
  finding.fingerprint = fingerprint_of(finding, option_class(study, prober));
  return finding;
}

std::string reach_of(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation) {
  if (study.refusal()) return "";
  const Prober prober(study, implementation, property, violation.cause);
  const Case& base = study.split();
  const ReachAxis* trigger = nullptr;
  double from = kFirstShare;  // the largest share of the way at which it begins to fail
  for (const ReachAxis& axis : study.signature().reach) {
    if (study.signature().find_field(axis.field)->absent || distance(base, axis) == 0.0) continue;
    if (prober.fails(tamed(base, axis, 0.0))) continue;
    if (trigger && prober.fails(tamed(base, axis, from))) continue;
    double holds = from, fails = 1.0;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(holds * fails);
      (prober.fails(tamed(base, axis, middle)) ? fails : holds) = middle;
    }
    trigger = &axis;
    from = fails;
  }
  if (!trigger) return "";
  const Dtype dtype = float_dtype(study.signature(), study.whole());
  char text[96];
  std::snprintf(text, sizeof text, "fails from %s %.4g in %s", trigger->name.c_str(),
                distance(tamed(base, *trigger, from), *trigger), std::string(name(dtype)).c_str());
  return text;
}

Finding make_finding(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation, bool benign) {
  Finding finding = name_finding(study, implementation, property, violation, benign);
  finding.reach = reach_of(study, implementation, property, violation);
  finding.diagnosis = diagnose(study, implementation, property, violation);
  return finding;
}

}  // namespace lossgate::properties
