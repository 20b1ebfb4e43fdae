// SPDX-License-Identifier: Apache-2.0
#include "properties/evaluation.h"

namespace lossgate::properties {

Evaluation::Evaluation(CaseStudy& study, const impl::Implementation& implementation)
    : study_(study),
      implementation_(implementation),
      arithmetic_(implementation.arithmetic(float_dtype(study.signature(), study.whole()))),
      stable_(arithmetic_) {
  if (!study.signature().forms.empty()) stable_.form = study.signature().forms.front();
}

LossResult Evaluation::call(const Case& c) {
  ++calls_;
  return implementation_.evaluate(signature(), c);
}

const LossResult& Evaluation::actual() {
  const auto known = results_.find("");
  return known != results_.end() ? known->second : keep("", study_.whole());
}

const LossResult& Evaluation::actual(const Transform& transform) {
  const auto known = results_.find(transform.name);
  if (known != results_.end()) return known->second;
  return keep(transform.name, study_.transformed(transform)->c);
}

const LossResult& Evaluation::keep(std::string_view key, const Case& c) {
  LossResult result = call(c);
  return results_.emplace(key, std::move(result)).first->second;
}

void Evaluation::foresee(const std::vector<const Transform*>& transforms) {
  if (!implementation_.foresee || study_.large()) return;
  std::vector<const Case*> cases;
  for (const Transform* transform : transforms) {
    if (results_.contains(transform->name)) continue;
    if (const Transformed* made = study_.transformed(*transform)) cases.push_back(&made->c);
  }
  implementation_.foresee(signature(), cases);
}

void Evaluation::foresee_nothing() {
  if (implementation_.foresee) implementation_.foresee(signature(), {});
}

void Evaluation::forget_derived() {
  if (!study_.large()) return;
  std::erase_if(results_, [](const auto& result) { return !result.first.empty(); });
  study_.forget_derived();
}

void Evaluation::forget(const Transform& transform) {
  if (study_.large()) results_.erase(transform.name);
}

}  // namespace lossgate::properties
