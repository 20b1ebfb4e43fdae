// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "properties/advice.h"
#include "properties/causes.h"
#include "properties/checks.h"
#include "properties/property.h"

namespace lossgate::properties {

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::core:
      return "core";
    case Tier::wide:
      return "wide";
    case Tier::hardening:
      return "hardening";
  }
  return "?";
}

const std::vector<Property>& catalog() {
  static const std::vector<Property> properties = {
      {"finite_forward",
       Tier::core,
       "Every returned value is finite wherever the formula's value and the magnitudes of its "
       "stable "
       "form fit the compute format.",
       "C1 C2",
       finite_forward,
       Precedence::finite,
       {},
       true},
      {"finite_backward",
       Tier::core,
       "Every gradient entry is finite under the same rule, whatever the upstream gradient.",
       "C1 C2",
       finite_backward,
       Precedence::finite,
       {},
       true},
      {"masked_positions_inert",
       Tier::core,
       "Replacing data at masked positions changes no bit of any output, and the gradient there is "
       "exactly 0.",
       "C4",
       masked_positions_inert,
       Precedence::always,
       {&kMaskedFinite, &kMaskedNonFinite}},
      {"no_laundering", Tier::core,
       "A NaN, or an infinity that must surface, at a valid position makes the loss non-finite or "
       "is refused.",
       "C3", no_laundering, Precedence::always},
      {"error_on_invalid", Tier::core,
       "Invalid input is refused, and the refusal names the argument at fault.", "C7",
       error_on_invalid, Precedence::always},
      {"empty_is_zero",
       Tier::core,
       "A batch or row without a valid position contributes exactly 0 loss and 0 gradient and "
       "changes no other contribution.",
       "C6",
       empty_is_zero,
       Precedence::always,
       {&kAllMasked, &kRowMasked, &kOneLeft}},
      {"zero_advantage_zero_gradient",
       Tier::core,
       "Advantage 0, with all other terms' coefficient 0, gives exactly 0 gradient for any "
       "importance weight, an overflowing one included.",
       "C2",
       zero_advantage_zero_gradient,
       Precedence::always,
       {&kZeroAdvantage}},
      {"reference_agreement",
       Tier::core,
       "Loss, per-token values and gradients agree with the reference within the bound that the "
       "declared arithmetic implies for this case.",
       "B1-B7 C5 C8",
       reference_agreement,
       Precedence::formula,
       {},
       true},
      {"split_invariance",
       Tier::core,
       "Any split into micro-batches and ranks gives the loss and gradient of the whole batch.",
       "D1 D2",
       split_invariance,
       Precedence::yields,
       {&kSplit},
       true},
      {"padding_invariance",
       Tier::core,
       "Adding masked columns on either side, or a masked row, changes nothing beyond the bound.",
       "B3 C4",
       padding_invariance,
       Precedence::yields,
       {&kPadded}},
      {"permutation_invariance",
       Tier::core,
       "Permuting sequences permutes per-sequence outputs and leaves the loss within the bound.",
       "B3",
       permutation_invariance,
       Precedence::yields,
       {&kRowsPermuted}},
      {"inputs_not_mutated",
       Tier::core,
       "No input changes during the call, and no setting that other code computes by.",
       "E4",
       inputs_not_mutated,
       Precedence::always,
       {&kSplit},
       true},
      {"determinism",
       Tier::core,
       "The same inputs give the same bits.",
       "E4",
       determinism,
       Precedence::always,
       {&kRepeated},
       true},
      {"grad_mode_invariance",
       Tier::core,
       "Without gradients the loss is the same, and so is a gradient where no other one is asked "
       "for, or where the function is called in between, or goes back with other data, twice or in "
       "parts, or where its inputs were changed in place since its last step; so are both inside "
       "torch.autocast, where that is promised.",
       "E11",
       grad_mode_invariance,
       Precedence::yields,
       {&kWithoutGradients, &kFirstAlone, &kSecondAlone, &kThirdAlone, &kFirstFrozen,
        &kSecondFrozen, &kThirdFrozen, &kEvaluatedBetween, &kForwardsBetween, &kSummedLosses,
        &kBackwardTwice, &kBackwardByRows, &kUpdated, &kUnderAutocast},
       true},
      {"on_policy_identity",
       Tier::wide,
       "With current = old = reference policy the importance weight is exactly 1 and KL exactly 0.",
       "B3",
       on_policy_identity,
       Precedence::yields,
       {&kOnPolicy}},
      {"bounds_hold",
       Tier::wide,
       "Outputs keep to the range that mathematics gives them.",
       "B3",
       bounds_hold,
       Precedence::yields,
       {},
       true},
      {"path_parity", Tier::wide,
       "Sound implementations of one loss agree within the sum of their bounds.", "B3", path_parity,
       Precedence::yields},
      {"gradient_matches_finite_difference",
       Tier::wide,
       "The backward is the central difference of the same forward, where the bound leaves a "
       "digit.",
       "B3 B6",
       gradient_matches_finite_difference,
       Precedence::yields,
       {&kStepForward, &kStepBackward}},
      {"finite_for_every_finite_input", Tier::hardening,
       "Outputs are finite for every finite input, even where the true value overflows.", "C2",
       finite_for_every_finite_input, Precedence::always},
  };
  return properties;
}

const Property* find_property(std::string_view name) {
  const auto& all = catalog();
  const auto at = std::ranges::find(all, name, &Property::name);
  return at == all.end() ? nullptr : &*at;
}

Outcome Property::check(Evaluation& evaluation) const {
  Outcome outcome = as_advised(*this, evaluation, ask(evaluation));
  const auto& violation = outcome.violation;
  // A case that a property makes of the given one may be beyond the implementation, which is no
  // refusal of a legal input.
  if (!violation || violation->place.output != impl::kNotComputed) return outcome;
  return skipped("unsupported: " + violation->detail);
}

namespace {

/// Whether the implementation is asked nothing by the property: it says so of itself.
bool is_left_out(const Property& property, const impl::Implementation& implementation) {
  const impl::Contract& contract = implementation.contract;
  if (property.ask == grad_mode_invariance) {
    return !implementation.autograd || !contract.grad_modes;
  }
  return (property.ask == empty_is_zero && contract.empty != Empty::zero) ||
         (property.ask == determinism && !contract.deterministic);
}

/// What the properties will ask about. Of an implementation that is not finite nothing is compared.
std::vector<const Transform*> foreseen(const std::vector<const Property*>& properties,
                                       const impl::Implementation& implementation, bool compares) {
  std::vector<const Transform*> transforms;
  for (const Property* property : properties) {
    if (!compares && property->precedence == Precedence::yields) continue;
    if (is_left_out(*property, implementation)) continue;
    for (const Transform* transform : property->transforms) {
      if (std::ranges::find(transforms, transform) == transforms.end()) {
        transforms.push_back(transform);
      }
    }
  }
  return transforms;
}

}  // namespace

std::vector<Outcome> check_all(Evaluation& evaluation,
                               const std::vector<const Property*>& properties, bool precedence,
                               const std::function<void(const Property&)>& before) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(properties.size());
  bool finite = true, formula = true, answered = true, told = false;
  for (const Property* property : properties) {
    if (before) before(*property);
    const Precedence rank = property->precedence;
    if (!told && rank != Precedence::finite) {
      const bool comparable = finite || !precedence;
      evaluation.foresee(foreseen(properties, evaluation.implementation(), comparable));
      told = true;
    }
    const bool compares = rank == Precedence::formula || rank == Precedence::yields;
    if (precedence && compares && !finite) {
      outcomes.push_back(skipped("not finite"));
    } else if (precedence && rank == Precedence::yields && !formula) {
      outcomes.push_back(skipped(answered ? "disagrees with the formula already" : "no values"));
    } else {
      outcomes.push_back(property->check(evaluation));
    }
    const bool wrong = outcomes.back().verdict == Verdict::violated;
    finite &= rank != Precedence::finite || !wrong;
    formula &= rank != Precedence::formula || !wrong;
    answered &= !wrong || !gives_no_result(outcomes.back().violation->cause);
    evaluation.forget_derived();
  }
  evaluation.foresee_nothing();
  return outcomes;
}

}  // namespace lossgate::properties
