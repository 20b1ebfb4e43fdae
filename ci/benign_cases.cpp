// SPDX-License-Identifier: Apache-2.0
#include "ci/benign_cases.h"

#include <algorithm>
#include <vector>

#include "ci/earlier_calls.h"
#include "ci/variant.h"
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
  fuzz::Choices choices = fuzz::case_choices(
      kBenignSeed, signature.id, dtype, fuzz::Profile::benign, static_cast<std::uint64_t>(index));
  Case c = fuzz::draw_case(signature, dtype, fuzz::Profile::benign, choices);
  if (index % kWithoutAdvantage == kWithoutAdvantage - 1) give_no_advantage(signature, c);
  return c;
}

bool BenignCases::show(const reference::Loss& loss, const impl::Implementation& subject,
                       const properties::Property& property, Dtype dtype,
                       const std::string& cause) {
  const std::string kind = subject.loss + "|" + subject.name + "|" + property.name + "|" + cause +
                           "|" + std::string(name(dtype));
  const auto [known, fresh] = shown_.try_emplace(kind, false);
  for (std::int64_t i = 0; fresh && !known->second && i < kBenignCases; ++i) {
    const Case c = benign_case(loss.signature, dtype, i);
    if (!takes(subject, c)) continue;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, subject);
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
