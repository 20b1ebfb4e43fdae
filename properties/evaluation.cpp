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
  auto [slot, fresh] = results_.try_emplace("");
  if (fresh) slot->second = call(study_.whole());
  return slot->second;
}

const LossResult& Evaluation::actual(const Transform& transform) {
  auto [slot, fresh] = results_.try_emplace(transform.name);
  if (fresh) slot->second = call(study_.transformed(transform)->c);
  return slot->second;
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
