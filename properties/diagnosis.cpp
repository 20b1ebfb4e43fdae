// SPDX-License-Identifier: Apache-2.0
#include "properties/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "properties/causes.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// What kind of experiment can say more than the violation itself.
enum class Symptom {
  settled,
  not_finite,
  behind_mask,
  miscounted,
  differs,
  laundered,
  refused,
  split,
  permuted,
  varies
};

Symptom symptom_of(const Property& property, std::string_view cause) {
  static constexpr std::pair<Symptom, std::string_view> kSymptoms[] = {
      {Symptom::not_finite, "overflow on a live path"},
      {Symptom::not_finite, "non-finite slope behind a bound"},
      {Symptom::not_finite, "zero times infinity"},
      {Symptom::not_finite, "not finite"},
      {Symptom::behind_mask, "non-finite value behind a mask"},
      {Symptom::behind_mask, "masked data leaks"},
      {Symptom::behind_mask, "gradient at a masked position"},
      {Symptom::miscounted, "empty row counted"},
      {Symptom::miscounted, "padding counted"},
      {Symptom::miscounted, "empty divisor"},
      {Symptom::laundered, "laundering"},
      {Symptom::refused, "legal input refused"},
      {Symptom::differs, "disagrees with the formula"},
      {Symptom::differs, "dead signal"},
      {Symptom::differs, "cancellation"},
      {Symptom::differs, "paths drift apart"},
      {Symptom::differs, "backward is not the derivative"},
      {Symptom::differs, "gradient without an advantage"},
      {Symptom::permuted, "a row reads another row"},
      {Symptom::varies, "order of operations varies"},
  };
  // An answer that is none has no numbers to look at, whatever was asked.
  const auto* known =
      std::ranges::find(kSymptoms, cause, &std::pair<Symptom, std::string_view>::second);
  const bool found = known != std::end(kSymptoms);
  if (found && known->first == Symptom::refused) return Symptom::refused;
  // What a part shows by itself no split has made.
  const bool unsplit = found && known->second == "disagrees with the formula";
  if (property.name == "split_invariance" && !unsplit) return Symptom::split;
  return found ? known->first : Symptom::settled;
}

/// Whatever was seen, an answer that is wrong on plain numbers is explained by those.
constexpr std::initializer_list<Symptom> kAnyNumber = {Symptom::miscounted, Symptom::differs,
                                                       Symptom::laundered, Symptom::not_finite};
constexpr std::initializer_list<Symptom> kWrongNumber = {Symptom::not_finite, Symptom::differs};

/// Where a property supposes a cause for what it saw, which any wrong number may have.
constexpr Symptom kSupposed[] = {Symptom::miscounted, Symptom::laundered, Symptom::permuted};

/// What is said of a gradient alone, which a wrong value beside it may explain.
constexpr std::string_view kOfGradients[] = {"dead signal", "backward is not the derivative"};

struct Probe {
  std::initializer_list<Symptom> symptoms;  ///< none: whatever was seen
  Opinion (*ask)(Suspect&);
  bool of_edges = false;      ///< says nothing of what is wrong on plain numbers
  bool of_gradients = false;  ///< says nothing of a value that is wrong
};

/// In order: of two opinions of one confidence the earlier stands.
const Probe kProbes[] = {
    {{}, probe_state},
    {{}, probe_strides},
    {{}, probe_length},
    {{Symptom::refused}, probe_refusal},
    {{Symptom::split}, probe_split},
    {{Symptom::refused, Symptom::not_finite, Symptom::differs}, probe_message},
    {kAnyNumber, probe_upstream, false, true},
    {{Symptom::behind_mask, Symptom::miscounted, Symptom::differs, Symptom::permuted}, probe_rows},
    {{Symptom::behind_mask, Symptom::miscounted, Symptom::differs, Symptom::laundered,
      Symptom::not_finite},
     probe_positions},
    {kAnyNumber, probe_last_class},
    {kAnyNumber, probe_lost_classes},
    {{Symptom::behind_mask, Symptom::miscounted, Symptom::differs, Symptom::laundered},
     probe_masked_terms},
    {{Symptom::behind_mask, Symptom::miscounted}, probe_cancelled_deviation},
    {{Symptom::behind_mask, Symptom::not_finite}, probe_behind_mask},
    {kAnyNumber, probe_sign},
    {kAnyNumber, probe_baseline},
    {kAnyNumber, probe_deviation},
    {kAnyNumber, probe_gaps},
    {kAnyNumber, probe_groups},
    {kAnyNumber, probe_weights},
    {kAnyNumber, probe_differences},
    {kAnyNumber, probe_broadcast},
    {{Symptom::not_finite}, probe_sum},
    {kWrongNumber, probe_empty, true},
    {{Symptom::not_finite, Symptom::split}, probe_kinds, true},
    {kWrongNumber, probe_dead_clamp},
    {kAnyNumber, probe_dead_gradient, false, true},
    {kAnyNumber, probe_steps},
    {kAnyNumber, probe_options},
    {kAnyNumber, probe_power},
    {kAnyNumber, probe_other_number},
    {kAnyNumber, probe_fields},
    {kAnyNumber, probe_lone},
    {kAnyNumber, probe_bound},
    {{Symptom::behind_mask, Symptom::miscounted, Symptom::differs, Symptom::permuted,
      Symptom::not_finite},
     probe_statistics},
    {{Symptom::differs}, probe_through_limit},
    {{Symptom::miscounted, Symptom::differs, Symptom::not_finite, Symptom::split,
      Symptom::permuted},
     probe_rounding},
    {{Symptom::differs}, probe_format, false, true},
    {kAnyNumber, probe_gradient, false, true},
    {kAnyNumber, probe_early_mean},
    {{Symptom::differs, Symptom::laundered, Symptom::not_finite}, probe_needed_options},
    {{Symptom::differs}, probe_constant_in_logarithm},
    {kAnyNumber, probe_floor},
    {kAnyNumber, probe_cap},
    {{Symptom::differs}, probe_filtered_gradient, true, true},
    {kAnyNumber, probe_factor},
    {kWrongNumber, probe_logits, true},
    {{Symptom::laundered}, probe_repaired_value, true},
    {{Symptom::not_finite}, probe_tail, true},
    {kWrongNumber, probe_exponents, true},
    {{Symptom::miscounted}, probe_emptied_row},
    {{Symptom::miscounted, Symptom::differs, Symptom::laundered, Symptom::not_finite,
      Symptom::split},
     probe_single},
    {{Symptom::not_finite}, probe_own_overflow},
};

/// Of what the split of a case shows, whether the whole batch is as wrong there by itself.
bool is_of_whole(Suspect& suspect) {
  const Violation& violation = suspect.violation();
  const auto& whole = suspect.as_given();
  if (!whole || !violation.has_numbers()) return false;
  return std::ranges::any_of(whole->entries(), [&](const ReadEntry& e) {
    const bool there = whole->outputs()[e.output].name == violation.place.output &&
                       e.index == violation.place.index;
    if (!there || !e.wrong()) return false;
    if (!std::isfinite(e.actual)) return !std::isfinite(violation.actual);
    return std::fabs(violation.actual - e.actual) <= kLargestRounding * e.distance();
  });
}

/// Whether the cause is one of gradients, and plain numbers have a value that is wrong.
bool is_of_wrong_value(Suspect& suspect, std::string_view cause) {
  const bool of_gradients = std::ranges::find(kOfGradients, cause) != std::end(kOfGradients);
  return of_gradients && is_wrong(suspect.plain()) && !suspect.plain()->forward_right();
}

/// Whether numbers that are apart by more than rounding are not so when the same is asked again.
bool comes_and_goes(CaseStudy& study, const impl::Implementation& implementation,
                    const Property& property, const Violation& violation) {
  const auto right = static_cast<double>(violation.expected);
  const double rounding = std::max(kLargestRounding * std::fabs(right), 2.0 * violation.allowed);
  const bool rounded = std::fabs(violation.actual - right) <= rounding;
  if (rounded || !violation.has_numbers()) return false;
  Evaluation again(study, implementation);
  again.tells_bias = false;
  return property.check(again).verdict == Verdict::held;
}

}  // namespace

bool is_open(const Property& property, std::string_view cause) {
  return symptom_of(property, cause) != Symptom::settled;
}

Diagnosis diagnose(CaseStudy& study, const impl::Implementation& implementation,
                   const Property& property, const Violation& violation) {
  Diagnosis best{.cause = violation.cause, .confidence = 0.0, .because = ""};
  if (study.loss().advice) return best;
  Symptom symptom = symptom_of(property, violation.cause);
  if (symptom == Symptom::settled) return best;
  // Whoever answers otherwise each time may add up in another order.
  if (symptom != Symptom::varies && comes_and_goes(study, implementation, property, violation)) {
    return {.cause = "state between calls",
            .confidence = 0.95,
            .because = "the same question, asked once more, has another answer"};
  }
  Suspect suspect(study, implementation, violation);
  const bool split = property.name == "split_invariance" && symptom != Symptom::refused;
  const bool of_whole = split && is_of_whole(suspect);
  if (of_whole) {
    symptom = std::isfinite(violation.actual) ? Symptom::differs : Symptom::not_finite;
  }
  for (const Probe& probe : kProbes) {
    bool asked = probe.symptoms.size() == 0;
    for (const Symptom each : probe.symptoms) asked |= each == symptom;
    if (!asked || (probe.of_edges && suspect.wrong_on_plain())) continue;
    if (probe.of_gradients && suspect.wrong_in_values()) continue;
    Opinion opinion = probe.ask(suspect);
    if (opinion && opinion->confidence > best.confidence) best = std::move(*opinion);
    if (best.confidence >= kSure) break;
  }
  if (best.confidence > 0.0) return best;
  if (of_whole && std::isfinite(violation.actual)) {
    return {.cause = "disagrees with the formula",
            .confidence = 0.5,
            .because = "the whole batch is as wrong"};
  }
  // What is wrong of a number that is one explains none that is not.
  const bool supposed = std::isfinite(violation.actual) &&
                        (is_of_wrong_value(suspect, best.cause) ||
                         (std::ranges::find(kSupposed, symptom) != std::end(kSupposed) &&
                          !find_cause(best.cause)->symptom));
  // What is right until sequences change places is wrong by their order, whatever else is wrong.
  const bool seen = symptom == Symptom::permuted && is_right(suspect.as_given());
  if (!supposed || seen || !suspect.wrong_on_plain()) return best;
  return {.cause = "disagrees with the formula",
          .confidence = 0.5,
          .because = "it disagrees on plain numbers, too, which no experiment explains"};
}

}  // namespace lossgate::properties
