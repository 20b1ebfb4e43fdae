// SPDX-License-Identifier: Apache-2.0
#include "ci/benign_cases.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "ci/earlier_calls.h"
#include "ci/variant.h"
#include "corpora/header.h"
#include "fuzz/draw_case.h"
#include "properties/another_formula.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Outcome;

/// Benign cases on which a finding's property is asked again, to know its grade.
constexpr std::int64_t kBenignCases = 16;

/// Of all of them, always: a fault that about half of them show would else be one finding in a run
/// and another one in the next.
constexpr std::uint64_t kBenignSeed = 1;

/// One case of so many has a sequence without an advantage.
constexpr std::int64_t kWithoutAdvantage = 4;

constexpr Dtype kFromWidest[] = {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::f16};

/// The first of several sequences, with advantages of 0: a prompt that is solved, or never, leaves
/// such sequences in many a batch.
void give_no_advantage(const LossSignature& signature, Case& c) {
  if (c.shape[Axis::sequences] < 2) return;
  for (const Field& field : signature.fields) {
    const bool has_rows = !field.axes.empty() && field.axes.front() == Axis::sequences;
    if (field.quantity != Quantity::advantage || field.absent || !has_rows) continue;
    Tensor& tensor = c.batch.at(field.name);
    const std::int64_t row = tensor.size() / c.shape[Axis::sequences];
    for (std::int64_t i = 0; i < row; ++i) tensor.set(i, 0.0);
  }
}

fuzz::Choices choices_of(const LossSignature& signature, Dtype dtype, std::int64_t index) {
  return fuzz::case_choices(kBenignSeed, signature.id, dtype, fuzz::Profile::benign,
                            static_cast<std::uint64_t>(index));
}

/// The options, numbers at an end of their range aside: that may be what fails.
LossSpec without_ends(const LossSignature& signature, LossSpec spec) {
  for (const Option& option : signature.options) {
    const double* number = std::get_if<double>(spec.find(option.name));
    if (number && option.kind != Option::Kind::flag &&
        (*number == option.low || *number == option.high)) {
      spec.set(option.name, option.standard);
    }
  }
  follow(signature, spec);
  return spec;
}

/// The index-th case drawn again, of its shape and under these options.
Case under(const LossSignature& signature, Case c, const LossSpec& spec, std::int64_t index) {
  c.spec = spec;
  fuzz::Choices choices = choices_of(signature, float_dtype(signature, c), index);
  return fuzz::draw_like(signature, c, fuzz::Keep::frame, fuzz::Profile::benign, choices);
}

bool takes(const impl::Implementation& subject, const Case& c) {
  return !subject.unsupported || !subject.unsupported(c);
}

/// Each in the widest format in which the subject takes it.
std::vector<Case> cases_in_widest_format(const LossSignature& signature,
                                         const impl::Implementation& subject) {
  const std::vector<Dtype> dtypes = dtypes_of(signature);
  std::vector<Case> cases;
  for (std::int64_t i = 0; i < kBenignCases; ++i) {
    for (const Dtype dtype : kFromWidest) {
      if (std::ranges::find(dtypes, dtype) == dtypes.end()) continue;
      Case c = benign_case(signature, dtype, i);
      if (!takes(subject, c)) continue;
      cases.push_back(std::move(c));
      break;
    }
  }
  return cases;
}

}  // namespace

Case benign_case(const LossSignature& signature, Dtype dtype, std::int64_t index) {
  fuzz::Choices choices = choices_of(signature, dtype, index);
  Case c = fuzz::draw_case(signature, dtype, fuzz::Profile::benign, choices);
  if (index % kWithoutAdvantage == kWithoutAdvantage - 1) give_no_advantage(signature, c);
  return c;
}

bool BenignCases::show(const reference::Loss& loss, const impl::Implementation& subject,
                       const properties::Property& property, const Case& failing,
                       const std::string& cause) {
  const Dtype dtype = float_dtype(loss.signature, failing);
  if (shows(loss, subject, property, dtype, cause, std::nullopt)) return true;
  const LossSpec spec = without_ends(loss.signature, failing.spec);
  return spec != standard_spec(loss.signature) &&
         shows(loss, subject, property, dtype, cause, spec);
}

bool BenignCases::shows(const reference::Loss& loss, const impl::Implementation& subject,
                        const properties::Property& property, Dtype dtype, const std::string& cause,
                        const std::optional<LossSpec>& spec) {
  std::string kind = subject.loss + "|" + subject.name + "|" + property.name + "|" + cause + "|" +
                     std::string(name(dtype));
  if (spec) {
    kind += "|" + std::string(name(spec->reduction));
    for (const auto& [option, value] : spec->options) kind += "|" + corpora::option_text(value);
  }
  const auto [known, fresh] = shown_.try_emplace(kind, false);
  for (std::int64_t i = 0; fresh && !known->second && i < kBenignCases; ++i) {
    Case c = benign_case(loss.signature, dtype, i);
    if (spec) c = under(loss.signature, std::move(c), *spec, i);
    if (!takes(subject, c)) continue;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, subject);
    evaluation.tells_bias = false;
    const Outcome outcome = property.check(evaluation);
    known->second = outcome.violation && outcome.violation->cause == cause;
  }
  return known->second;
}

bool BenignCases::another_formula(const reference::Loss& loss, const impl::Implementation& subject,
                                  const properties::Property& property,
                                  const properties::Violation& violation,
                                  const std::function<void()>& before) {
  if (loss.advice || !properties::hangs_on_formula(property, violation)) return false;
  const auto [known, fresh] =
      another_formula_.try_emplace(subject.loss + "|" + subject.name, false);
  if (!fresh) return known->second;
  const std::vector<Case> cases = cases_in_widest_format(loss.signature, subject);
  try {
    known->second = properties::computes_another_formula(loss, subject, cases);
    if (!known->second) return false;
    // What has another one after so many calls alone keeps something of them.
    if (const auto own = in_new_process(selection_, subject, before)) {
      known->second = properties::computes_another_formula(loss, *own, cases);
    }
  } catch (const ImplementationThrew&) {  // so it cannot be said, or stays as it was said
  } catch (const impl::SubjectError&) {
  }
  return known->second;
}

}  // namespace lossgate::ci
