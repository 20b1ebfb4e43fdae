// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.h"

#include <rapidcheck.h>
#include <rapidcheck/shrinkable/Create.h>
#include <rapidcheck/shrinkable/Operations.h>

#include <exception>
#include <utility>

#include "fuzz/smaller.h"
#include "properties/behind_mask.h"
#include "reference/spec/contract.h"

namespace lossgate::fuzz {

std::optional<Failure> Failure::on(const reference::Loss& loss,
                                   const impl::Implementation& implementation,
                                   const properties::Property& property, const Case& c) {
  Failure failure(loss, implementation, property);
  std::optional<Kind> kind = failure.kind_on(c);
  if (!kind) return std::nullopt;
  failure.kind_ = std::move(*kind);
  failure.keeps_to_contract_ = keeps_to_contract(loss.signature, c);
  return failure;
}

bool Failure::shows_on(const Case& c) const {
  if (keeps_to_contract_ && !keeps_to_contract(loss_->signature, c)) return false;
  try {
    const std::optional<Kind> kind = kind_on(c);
    return kind && *kind == kind_;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<Failure::Kind> Failure::kind_on(const Case& c) const {
  if (implementation_->unsupported && implementation_->unsupported(c)) return std::nullopt;
  properties::CaseStudy study(*loss_, c);
  properties::Evaluation evaluation(study, *implementation_);
  const properties::Outcome outcome = property_->check(evaluation);
  if (!outcome.violation) return std::nullopt;
  const properties::Place& place = outcome.violation->place;
  const bool counts = study.refusal() || properties::anything_counts(study);
  return Kind{outcome.violation->cause, place.output, place.valid, counts};
}

Minimised minimise(const Failure& failure, const Case& c, const Effort& effort,
                   const std::function<void(const Case&, std::int64_t)>& progress) {
  const LossSignature& signature = failure.loss().signature;
  Minimised result;
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return result.tried >= effort.tries || std::chrono::steady_clock::now() - start >= effort.time;
  };
  const auto still_fails = [&](const Case& simpler) {
    ++result.tried;
    const bool fails = failure.shows_on(simpler);
    if (fails && progress) progress(simpler, result.tried);
    return fails;
  };
  const auto tree = rc::shrinkable::shrinkRecur(c, [&](const Case& at) {
    return rc::seq::takeWhile(smaller_cases(signature, at), [&](const Case&) { return !spent(); });
  });
  result.c = rc::shrinkable::findLocalMin(tree, still_fails).first;
  result.complete = !spent();
  return result;
}

}  // namespace lossgate::fuzz
