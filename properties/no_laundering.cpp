// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {
namespace {

/// What was poisoned.
struct Poison {
  std::string places;  ///< the first entry of each field: "log_prob[0, 1] (-1.5 before)"
  bool nan = false;    ///< it became NaN, rather than infinite
  bool negative = false;

  /// "a NaN in log_prob[0, 1] (-1.5 before)".
  std::string text() const {
    return (nan ? "a NaN in " : negative ? "-infinity in " : "infinity in ") + places;
  }
};

std::string coordinates_text(const Extents& extents, std::int64_t index) {
  std::string text;
  for (std::size_t axis = extents.size(); axis-- > 0; index /= extents[axis]) {
    text = std::to_string(index % extents[axis]) + (text.empty() ? "" : ", ") + text;
  }
  return "[" + text + "]";
}

/// Of a number that is overwritten, and of as many more.
std::string before_text(double value, std::int64_t more) {
  std::ostringstream text;
  text << " (" << std::setprecision(9) << value << " before";
  if (more > 0) text << ", and in " << more << " more";
  text << ")";
  return text.str();
}

Poison poison_of(const Case& before, const Case& after) {
  Poison poison;
  for (const auto& [name, tensor] : before.batch.fields) {
    const Tensor& other = after.batch.at(name);
    std::int64_t first = -1, changed = 0;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double now = other.at(i), was = tensor.at(i);
      if (std::isfinite(now) || now == was || std::isnan(was)) continue;
      if (changed++ == 0) first = i;
      poison.nan = std::isnan(now);
      poison.negative = now < 0.0;
    }
    if (changed == 0) continue;
    poison.places += (poison.places.empty() ? "" : " and ") + name +
                     coordinates_text(tensor.extents, first) +
                     before_text(tensor.at(first), changed - 1);
  }
  return poison;
}

/// The loss speaks for everything behind it; an operation without one answers entry by entry.
OutputKind speaker(const std::vector<OutputInfo>& outputs) {
  return outputs.front().kind == OutputKind::loss ? OutputKind::loss : OutputKind::value;
}

/// Whether something that speaks is finite.
bool says_a_number(const std::vector<OutputInfo>& outputs, const LossResult& result) {
  return std::ranges::any_of(outputs, [&](const OutputInfo& output) {
    if (output.kind != speaker(outputs)) return false;
    const Tensor& tensor = *result.find(output.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isfinite(tensor.at(i))) return true;
    }
    return false;
  });
}

/// An entry that speaks, and what the formula has there: no finite number.
struct Lost {
  const OutputInfo* output;
  std::int64_t index;
  reference::Real expected;
};
using Entries = std::vector<Lost>;

/// All entries that speak.
Entries spoken(CaseStudy& study) {
  Entries all;
  for (const OutputInfo& output : study.outputs()) {
    if (output.kind != speaker(study.outputs())) continue;
    for (std::int64_t i = 0; i < element_count(output.extents); ++i) {
      all.push_back({&output, i, std::nanl("")});
    }
  }
  return all;
}

/// The entries that the formula loses to the poison, of those that speak: fed with it, the
/// reference says which depend on it.
Entries lost_to(CaseStudy& poisoned, bool nan, Evaluation& evaluation) {
  const auto& outputs = poisoned.outputs();
  // What is no number even without the poison says nothing about it; an infinity, nothing about
  // another, nor of a NaN that it does not become.
  std::set<std::pair<std::size_t, std::int64_t>> undefined, infinite;
  evaluation.study().for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        if (nan ? std::isnan(expected.v) : !std::isfinite(expected.v)) undefined.emplace(o, i);
        if (std::isinf(expected.v)) infinite.emplace(o, i);
      },
      CaseStudy::Wanted::values);
  // Where an infinity leaves a NaN it met a zero or another infinity, and either may decide.
  Entries lost;
  poisoned.for_each_expected(
      evaluation.arithmetic(), false,
      [&](std::size_t o, std::int64_t i, const reference::Tracked& expected) {
        const bool surfaces = std::isinf(expected.v) ? !nan || !infinite.contains({o, i})
                                                     : nan && std::isnan(expected.v);
        if (outputs[o].kind == speaker(outputs) && surfaces && !undefined.contains({o, i})) {
          lost.push_back({&outputs[o], i, expected.v});
        }
      },
      CaseStudy::Wanted::values);
  return lost;
}

/// The case with this number where the other one is poisoned.
Case with_number(const Case& before, const Case& poisoned, double number) {
  Case c = before;
  for (auto& [name, tensor] : c.batch.fields) {
    const Tensor& other = poisoned.batch.at(name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isfinite(tensor.at(i)) && !std::isfinite(other.at(i))) tensor.set(i, number);
    }
  }
  return c;
}

/// Whether the entry is the formula's without the poison, and depends on the number that was
/// poisoned, at which the expression that computes it may look in vain (a + v - v): whether another
/// one there makes another entry, by more than rounding does.
bool depends(Evaluation& evaluation, const Case& poisoned, const OutputInfo& output,
             std::int64_t index) {
  using reference::Tracked;
  const auto expected = [&](CaseStudy& study, const Arithmetic& arithmetic) {
    Tracked found;
    study.for_each_expected(
        arithmetic, false,
        [&](std::size_t o, std::int64_t i, const Tracked& entry) {
          if (study.outputs()[o].name == output.name && i == index) found = entry;
        },
        CaseStudy::Wanted::values);
    return found;
  };
  CaseStudy& study = evaluation.study();
  const Tracked right = expected(study, evaluation.arithmetic());
  const double plain = evaluation.actual().find(output.name)->at(index);
  const double accepted = largest_accepted(evaluation.arithmetic(), output, right);
  if (!(std::fabs(static_cast<double>(plain - right.v)) <= accepted)) return false;
  // What underflows, or is flushed, on the way to the poison is 0 there.
  Arithmetic exact = reference::real_arithmetic();
  exact.eta = std::max(exact.eta, evaluation.arithmetic().eta);
  exact.flush = std::max(exact.flush, evaluation.arithmetic().flush);
  const Tracked own = expected(study, exact);
  constexpr double kNumbers[] = {0.0, -1.0, -4.0, 3.0};
  return std::ranges::any_of(kNumbers, [&](double number) {
    CaseStudy moved(study.loss(), with_number(study.whole(), poisoned, number));
    if (moved.refusal()) return false;
    const Tracked other = expected(moved, exact);
    using reference::tracking::whole_reach;
    return !(std::fabs(own.v - other.v) <= whole_reach(own) + whole_reach(other));
  });
}

Outcome with_poison(Evaluation& evaluation, const Transform& poison) {
  CaseStudy* poisoned = evaluation.study().derived(poison);
  if (!poisoned) return vacuous("no trigger");
  const Poison what = poison_of(evaluation.study().whole(), poisoned->whole());
  const bool refused = poisoned->refusal().has_value();
  if (refused && !what.nan) return vacuous("no trigger");  // the formula may have a value there
  const LossResult& actual = evaluation.actual(poison);
  if (actual.refusal) return held();
  CaseStudy& shaped = refused ? evaluation.study() : *poisoned;
  const auto& outputs = shaped.outputs();
  if (auto violation = malformed(shaped, actual)) return violated(*violation);
  // Who says no number launders none, and the formula need not be asked.
  if (!says_a_number(outputs, actual)) {
    return says_a_number(outputs, evaluation.actual()) ? held() : vacuous("no trigger");
  }
  // Advice is what the function itself says in f64, and launders as it does.
  const bool advised = shaped.loss().advice && what.nan;
  const Entries lost =
      refused || advised ? spoken(shaped) : lost_to(*poisoned, what.nan, evaluation);
  for (const auto& [output, index, expected] : lost) {
    const double value = actual.find(output->name)->at(index);
    if (!std::isfinite(value)) continue;
    if (!depends(evaluation, poisoned->whole(), *output, index)) continue;
    return violated({.place = place_of(shaped, *output, index),
                     .actual = value,
                     .expected = expected,
                     .error_ratio = HUGE_VAL,
                     .detail = what.text() + " at a valid position became a plausible number",
                     .cause = "laundering"});
  }
  return lost.empty() ? vacuous("no trigger") : held();
}

}  // namespace

/// Rule C3. A field that is laundered hides from a poison in another, so three are asked; and
/// who leaves out what has no number at all hides from each.
Outcome no_laundering(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return *outcome;
  std::optional<Outcome> all;
  for (const Transform* poison :
       {&kNanAtValid, &kNanInAnotherField, &kNanInAThirdField, &kNanOfModel}) {
    if (all) evaluation.forget_derived();
    Outcome outcome = with_poison(evaluation, *poison);
    if (outcome.violation) return outcome;
    if (!all || all->verdict == Verdict::vacuous) all = std::move(outcome);
  }
  return *all;
}

}  // namespace lossgate::properties
