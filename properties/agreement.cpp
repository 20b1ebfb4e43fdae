// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "properties/allowance.h"
#include "properties/behind_mask.h"
#include "properties/causes.h"
#include "properties/filtered.h"
#include "properties/zero_upstream.h"
#include "reference/rounding_in_sums.h"

namespace lossgate::properties {
namespace {

using reference::Formats;
using reference::kThreshold;
using reference::Tracked;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double ratio_of(double distance, double exempt, double allowed) {
  const double excess = std::max(distance - exempt, 0.0);
  if (excess == 0.0) return 0.0;
  return allowed == 0.0 ? kInfinity : excess / allowed;
}

/// Of the output and of what computes it, the largest number that fits both.
double largest_of_both(const Formats& formats) {
  return std::min(formats.largest, formats.largest_computed);
}

/// Where the value overflows, these are right, and NaN is tolerated (rule C2). Of the infinities
/// and the largest finite numbers, those are right that an answer within the bound can overflow to.
bool acceptable_overflow(const Formats& formats, const Tracked& expected, double actual) {
  if (std::isnan(actual)) return true;
  const double largest = largest_of_both(formats);
  const double towards = static_cast<double>(std::signbit(actual) ? -expected.v : expected.v);
  const double error = std::isinf(towards) ? 0.0 : kThreshold * expected.err;
  const double reach = error + expected.half;
  // A partial sum beyond what the value itself may be may have overflowed with the other sign
  // first.
  const bool sign_known = reference::tracking::is_its_own_peak(expected);
  const bool overflown = std::fabs(actual) == largest || std::fabs(actual) >= formats.largest;
  return overflown && (!sign_known || !(towards + reach < largest));
}

/// Collects the entries of one comparison.
class Judge {
 public:
  explicit Judge(const Comparison& comparison) : comparison_(comparison) {
    for (const OutputInfo& output : comparison.study.outputs()) {
      actual_.push_back(comparison.actual.find(output.name));
    }
    excused_ = nan_excused(comparison.study, comparison.arithmetic);
  }

  void operator()(std::size_t output, std::int64_t index, const Tracked& expected) {
    (*this)(output, index, expected, comparison_.exact_values);
  }

  /// Of an entry that must be `exact`, if it is a value.
  void operator()(std::size_t index_of_output, std::int64_t index, const Tracked& expected,
                  bool exact) {
    const OutputInfo& output = comparison_.study.outputs()[index_of_output];
    if (std::isnan(expected.v)) {
      ++undefined_;
      return;
    }
    const Tensor& tensor = *actual_[index_of_output];
    const std::int64_t at =
        comparison_.moved ? comparison_.moved->index_of(output, tensor.extents, index) : index;
    const double actual = tensor.at(at);
    if (std::isnan(actual) && excused_.contains({index_of_output, index})) return;
    judge(output, index, expected, actual, exact && output.kind == OutputKind::value);
  }

  Outcome outcome() const {
    Outcome result{.worst_ratio = worst_, .compared = compared_, .no_digit = no_digit_};
    if (violation_) {
      result.verdict = Verdict::violated;
      result.violation = violation_;
    } else if (compared_ == 0) {
      result.verdict = Verdict::skipped;
      result.reason = undefined_ > 0 ? "reference overflow" : "nothing to compare";
    } else if (no_digit_ == compared_) {
      result.verdict = Verdict::vacuous;
      result.reason = "no digit";
    }
    return result;
  }

 private:
  void judge(const OutputInfo& output, std::int64_t index, const Tracked& expected, double actual,
             bool exact) {
    Formats formats(output, comparison_.arithmetic.compute);
    // Parts may leave their gradients in its own dtype, as a trainer's .grad does, and add them up.
    if (comparison_.split && output.kind == OutputKind::gradient) {
      formats.largest_computed = std::min(formats.largest_computed, formats.largest);
    }
    const bool peak_fits = must_be_finite(formats, expected);
    if (!peak_fits && !std::isfinite(actual)) {
      // Beyond the range an infinity must at least have the right sign where the value decides it.
      const bool fits = most_allowed(expected) <= largest_of_both(formats);
      if (fits || acceptable_overflow(formats, expected, actual)) return;
    }
    if (!peak_fits && std::isfinite(actual) && !std::isfinite(static_cast<double>(expected.v))) {
      if (acceptable_overflow(formats, expected, actual)) return;
    }
    const double distance =
        std::isfinite(actual) ? static_cast<double>(std::fabs(actual - expected.v)) : kInfinity;
    const auto [exempt, scaled, allowed] = allowance(
        formats, exact ? correctly_rounded(output, expected, comparison_.arithmetic) : expected);
    ++compared_;
    // An infinity that stands in the input is exact, and no moderate number is near it. One that
    // Real or double overflowed to has an infinite bound: nothing is said.
    const bool infinite =
        std::isinf(expected.v) && std::isfinite(expected.err) && std::isfinite(expected.half);
    const double ratio = infinite               ? kInfinity
                         : allowed == kInfinity ? 0.0
                                                : ratio_of(distance, exempt, scaled);
    if (ratio > kThreshold) {
      // Beyond the compute format's range the first-order bound says nothing of a finite result.
      if (!peak_fits && acceptable_overflow(formats, expected, actual)) return;
      record(output, index, expected, actual, exempt - expected.half + kThreshold * scaled, ratio);
    } else if (allowed > 0.0 &&
               kThreshold * allowed >= static_cast<double>(std::fabs(expected.v))) {
      ++no_digit_;
    }
    worst_ = std::max(worst_, ratio);
  }

  void record(const OutputInfo& output, std::int64_t index, const Tracked& expected, double actual,
              double allowed, double ratio) {
    // The loss is what people watch: where it is wrong it speaks for its gradients.
    const bool loss = output.kind == OutputKind::loss;
    if (violation_ && !loss && (loss_speaks_ || ratio <= violation_->error_ratio)) return;
    loss_speaks_ |= loss;
    violation_ = Violation{.place = place_of(comparison_.study, output, index),
                           .actual = actual,
                           .expected = expected.v,
                           .allowed = allowed,
                           .half_width = expected.half,
                           .error_ratio = ratio,
                           .detail = "",
                           .cause = ""};
  }

  const Comparison& comparison_;
  std::vector<const Tensor*> actual_;
  std::set<OutputEntry> excused_;
  double worst_ = 0.0;
  std::int64_t compared_ = 0, no_digit_ = 0, undefined_ = 0;
  std::optional<Violation> violation_;
  bool loss_speaks_ = false;
};

/// Values that are exact, but for those that depend on equal numbers which may be added up apart:
/// their sums differ by what these round (rule B7), and what is made of that rounds as ever.
Outcome compare_but_sums(const Comparison& comparison) {
  Judge judge(comparison);
  const Arithmetic sums = reference::rounding_in_sums_alone(comparison.arithmetic);
  comparison.study.for_each_pair(
      comparison.arithmetic, sums,
      [&](std::size_t o, std::int64_t i, const Tracked& expected, const Tracked& summed) {
        judge(o, i, expected, summed.err == 0.0);
      });
  return judge.outcome();
}

/// The output that the message names, else the first.
std::string output_meant(const CaseStudy& study, const Refusal& refusal) {
  for (const OutputInfo& output : study.outputs()) {
    if (std::ranges::count(refusal.beside, output.name) > 0) return output.name;
  }
  return study.outputs().front().name;
}

}  // namespace

bool in_range(const OutputInfo& output, const Tracked& expected) {
  return in_range(Formats(output), expected);
}

bool all_finite(const LossResult& result) {
  return std::ranges::all_of(result.outputs,
                             [](const Output& output) { return output.tensor.all_finite(); });
}

bool must_be_finite(const Arithmetic& arithmetic, const OutputInfo& output,
                    const Tracked& expected) {
  return must_be_finite(Formats(output, arithmetic.compute), expected);
}

double allowed_error(const OutputInfo& output, const Tracked& expected) {
  return allowance(Formats(output), expected).allowed;
}

Place place_of(const CaseStudy& study, const OutputInfo& output, std::int64_t index) {
  Place place{.output = output.name, .index = index};
  place.coordinates.resize(output.axes.size());
  for (std::size_t axis = output.axes.size(); axis-- > 0;) {
    const std::int64_t at = index % output.extents[axis];
    index /= output.extents[axis];
    place.coordinates[axis] = at;
    if (output.axes[axis] == Axis::sequences) place.sequence = at;
    if (output.axes[axis] == Axis::tokens) place.token = at;
  }
  if (place.token >= 0) place.valid = study.valid(place.sequence, place.token);
  return place;
}

double largest_accepted(const Arithmetic& arithmetic, const OutputInfo& output,
                        const Tracked& expected) {
  const auto [exempt, scaled, allowed] = allowance(Formats(output, arithmetic.compute), expected);
  return exempt + kThreshold * scaled;
}

Outcome compare(const Comparison& comparison) {
  if (auto outcome = compare_filtered(comparison)) return *std::move(outcome);
  Judge judge(comparison);
  comparison.study.for_each_expected(comparison.arithmetic, comparison.split, std::ref(judge),
                                     comparison.wanted);
  Outcome outcome = judge.outcome();
  return comparison.exact_values && outcome.violation ? compare_but_sums(comparison) : outcome;
}

bool empty_by_contract(Evaluation& evaluation) {
  return evaluation.implementation().contract.empty != Empty::zero &&
         !anything_counts(evaluation.study());
}

std::optional<Outcome> unusable(Evaluation& evaluation) {
  if (evaluation.study().refusal()) return skipped("the input is to be refused");
  if (empty_by_contract(evaluation)) return skipped("contract");
  if (malformed(evaluation.study(), evaluation.actual())) return skipped("no values");
  return std::nullopt;
}

std::optional<Outcome> unusable_or_nan(Evaluation& evaluation) {
  if (auto outcome = unusable(evaluation)) return outcome;
  if (evaluation.study().nan_at_valid()) return skipped("NaN at a valid position");
  return std::nullopt;
}

std::optional<Outcome> incomparable(Evaluation& evaluation) {
  if (auto outcome = unusable_or_nan(evaluation)) return outcome;
  const std::string_view reason = reference::unsuitable_for(evaluation.arithmetic());
  if (!reason.empty()) return skipped(std::string(reason));
  return std::nullopt;
}

std::optional<Violation> first_difference(const CaseStudy& study, const LossResult& base,
                                          const LossResult& other, Zeros signs) {
  for (const OutputInfo& output : study.outputs()) {
    const Tensor* a = base.find(output.name);
    const Tensor* b = other.find(output.name);
    for (std::int64_t i = 0; a && b && i < a->size(); ++i) {
      if (load_bits(a->dtype, a->element(i)) == load_bits(b->dtype, b->element(i))) continue;
      const double first = a->at(i), second = b->at(i);
      if (std::isnan(first) && std::isnan(second)) continue;
      Place place = place_of(study, output, i);
      if (first == second && (signs == Zeros::all || !place.valid)) continue;
      return Violation{.place = std::move(place),
                       .actual = second,
                       .expected = first,
                       .error_ratio = kInfinity,
                       .detail = "",
                       .cause = ""};
    }
  }
  return std::nullopt;
}

std::optional<Violation> malformed(const CaseStudy& study, const LossResult& actual) {
  if (actual.refusal && actual.refusal->argument == impl::kNoResult) {
    return Violation{.place = {.output = output_meant(study, *actual.refusal)},
                     .detail = actual.refusal->message,
                     .cause = std::string(cause_of_no_result(actual.refusal->beside))};
  }
  if (actual.refusal) {
    const bool beyond = actual.refusal->argument == impl::kNotComputed;
    return Violation{.place = {.output = actual.refusal->argument},
                     .detail = (beyond ? "" : "refused a legal input: ") + actual.refusal->message,
                     .cause = beyond ? "not computed" : "legal input refused"};
  }
  for (const OutputInfo& output : study.outputs()) {
    const Tensor* tensor = actual.find(output.name);
    if (tensor && tensor->extents == output.extents && tensor->dtype == output.dtype) continue;
    return Violation{.place = {.output = output.name},
                     .detail = tensor ? "output has another shape or dtype" : "output is missing",
                     .cause = "malformed result"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
