// SPDX-License-Identifier: Apache-2.0
#include "ci/arithmetic_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "ci/declarations.h"
#include "ci/variant.h"
#include "fuzz/draw_case.h"
#include "properties/agreement.h"

namespace lossgate::ci {
namespace {

using impl::DeclaredArithmetic;
using properties::CaseStudy;

constexpr int kCases = 16;
constexpr std::uint64_t kSeed = 40;
/// A declaration that is wider by less is left as it is.
constexpr double kMuchNarrower = 8.0;

/// log2 of a bound that is none: wider than any.
constexpr double kNoBound = 1024.0;

/// What a declaration makes of the values seen.
struct Fit {
  double ratio = 0.0;      ///< worst error, in units of the bound
  double log_bound = 0.0;  ///< mean of log2(bound) over all entries that are not exact
  double unbounded = 0.0;  ///< the share of these whose bound is none

  bool holds() const { return ratio <= reference::kThreshold; }
};

/// The subject on benign cases of one format.
class Observations {
 public:
  Observations(const Brought& brought, Dtype stored)
      : brought_(brought), stored_(stored), subject_(guarded(brought.implementation)) {
    const LossSignature& signature = brought.loss.signature;
    for (int i = 0; i < kCases; ++i) {
      fuzz::Choices choices = fuzz::case_choices(kSeed, signature.id, stored, fuzz::Profile::benign,
                                                 static_cast<std::uint64_t>(i));
      Case c = fuzz::draw_case(signature, stored, fuzz::Profile::benign, choices);
      c.split = {};
      if (subject_.unsupported(c)) continue;
      auto study = std::make_unique<CaseStudy>(brought.loss, std::move(c));
      LossResult actual = subject_.evaluate(signature, study->whole());
      if (study->refusal() || malformed(*study, actual)) continue;
      seen_.push_back({std::move(study), std::move(actual)});
    }
  }

  int size() const { return static_cast<int>(seen_.size()); }

  Fit fit(const DeclaredArithmetic& declared) {
    const Arithmetic arithmetic = arithmetic_of(declared);
    Fit fit;
    std::int64_t bounded = 0;
    for (Seen& one : seen_) {
      const auto outcome = properties::compare(
          {.study = *one.study, .arithmetic = arithmetic, .actual = one.actual});
      fit.ratio = std::max(fit.ratio, outcome.worst_ratio);
      if (!fit.holds()) return fit;
      one.study->for_each_expected(
          arithmetic, false, [&](std::size_t, std::int64_t, const reference::Tracked& e) {
            if (!(e.err > 0.0)) return;
            fit.log_bound += std::isinf(e.err) ? kNoBound : std::log2(e.err);
            fit.unbounded += std::isinf(e.err);
            ++bounded;
          });
    }
    if (hides(arithmetic)) fit.ratio = HUGE_VAL;
    if (bounded == 0) return fit;
    fit.log_bound /= static_cast<double>(bounded);
    fit.unbounded /= static_cast<double>(bounded);
    return fit;
  }

  /// Holds further declarations against what this one says is wrong.
  void dispute(const DeclaredArithmetic& declared) {
    const Arithmetic arithmetic = arithmetic_of(declared);
    each_entry(arithmetic, [&](const OutputInfo& output, double actual, const auto& e) {
      const double accepted = properties::largest_accepted(arithmetic, output, e);
      disputed_.push_back(!(std::fabs(actual - e.v) <= accepted));
    });
  }

  /// Whether most results stay as they are when the fields change by less than a narrower format
  /// sees.
  bool insensitive() {
    const double change = 1.0 + 64.0 * unit_roundoff(stored_);
    return same_share(is_differentiable, [&](double value) { return value * change; }) > 0.5;
  }

  /// The narrowest format that the function rounds its fields to.
  std::optional<Dtype> rounds_fields_to() {
    auto formats = narrower_formats(stored_);
    std::ranges::reverse(formats);
    for (const Dtype format : formats) {
      const auto rounded = [&](double value) { return round_to(format, value); };
      if (same_share(is_differentiable, rounded) == 1.0) return format;
    }
    return std::nullopt;
  }

  /// Whether it rounds this field to the format of the others.
  bool rounds(const std::string& field) {
    const auto is_it = [&](const Field& other) { return other.name == field; };
    const auto rounded = [&](double value) { return round_to(stored_, value); };
    return same_share(is_it, rounded) == 1.0;
  }

 private:
  struct Seen {
    std::unique_ptr<CaseStudy> study;
    LossResult actual;
  };

  Arithmetic arithmetic_of(const DeclaredArithmetic& declared) const {
    impl::Subject subject = brought_.subject;
    subject.arithmetic = declared;
    return impl::brought_implementation(subject, brought_.loss.signature, brought_.session)
        .arithmetic(stored_);
  }

  /// Always in the same order.
  template <class Visit>
  void each_entry(const Arithmetic& arithmetic, Visit&& visit) {
    for (Seen& one : seen_) {
      one.study->for_each_expected(arithmetic, false,
                                   [&](std::size_t o, std::int64_t i, const reference::Tracked& e) {
                                     const OutputInfo& output = one.study->outputs()[o];
                                     visit(output, one.actual.find(output.name)->at(i), e);
                                   });
    }
  }

  /// Whether an entry that is disputed has no digit, so that anything would hold.
  bool hides(const Arithmetic& arithmetic) {
    if (disputed_.empty()) return false;
    bool hidden = false;
    std::size_t at = 0;
    each_entry(arithmetic, [&](const OutputInfo& output, double, const auto& e) {
      if (!disputed_.at(at++) || e.v == 0.0L) return;
      hidden |= !(properties::largest_accepted(arithmetic, output, e) < std::fabs(e.v));
    });
    return hidden;
  }

  static bool is_differentiable(const Field& field) { return field.role == Role::differentiable; }

  /// The share of results that stay as they are, bit for bit, when these fields are changed; 0
  /// where there are none.
  template <class Wanted, class Change>
  double same_share(Wanted&& wanted, Change&& change) {
    std::int64_t same = 0, all = 0;
    for (const Seen& one : seen_) {
      const auto changed = with_fields(one.study->whole(), wanted, change);
      if (!changed) continue;
      const LossResult result = subject_.evaluate(brought_.loss.signature, *changed);
      if (malformed(*one.study, result)) continue;
      for (const OutputInfo& output : one.study->outputs()) {
        const Tensor& before = *one.actual.find(output.name);
        const Tensor& after = *result.find(output.name);
        for (std::int64_t i = 0; i < before.size(); ++i) {
          if (before.at(i) == 0.0) continue;
          same += before.at(i) == after.at(i);
          ++all;
        }
      }
    }
    return all == 0 ? 0.0 : static_cast<double>(same) / static_cast<double>(all);
  }

  /// The case with these fields changed; nothing where none of them is another number.
  template <class Wanted, class Change>
  std::optional<Case> with_fields(Case c, Wanted&& wanted, Change&& change) const {
    bool other = false;
    for (const Field& field : brought_.loss.signature.fields) {
      Tensor& tensor = c.batch.at(field.name);
      if (!wanted(field) || !is_float(tensor.dtype)) continue;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double before = tensor.at(i);
        if (!std::isfinite(before)) continue;
        tensor.set(i, change(before));
        other |= tensor.at(i) != before;
      }
    }
    return other ? std::optional(std::move(c)) : std::nullopt;
  }

  const Brought& brought_;
  Dtype stored_;
  impl::Implementation subject_;
  std::vector<Seen> seen_;
  std::vector<bool> disputed_;  ///< by entry
};

/// The narrowest declaration whose bound holds every value as it is: T is for what bounds of first
/// order leave out, which is little on benign cases.
std::optional<DeclaredArithmetic> narrowest(Observations& observations,
                                            const DeclaredArithmetic& declared, bool fits,
                                            Dtype stored, Fit& fit) {
  std::optional<DeclaredArithmetic> found;
  std::optional<bool> insensitive;
  for (const DeclaredArithmetic& candidate : candidates(declared, fits, stored)) {
    const Fit next = observations.fit(candidate);
    if (next.ratio > 1.0 || (found && next.log_bound >= fit.log_bound)) continue;
    if (narrows(candidate, stored)) {
      if (!insensitive) insensitive = observations.insensitive();
      if (!*insensitive) continue;
    }
    found = candidate;
    fit = next;
  }
  return found;
}

/// Wide fields that keep their digits alone, where some are rounded to the others' format at once.
std::optional<Proposal> fewer_wide_fields(Observations& observations, const impl::Subject& subject,
                                          Dtype stored) {
  std::vector<std::string> rounded, kept;
  for (const std::string& field : subject.wide) {
    if (observations.rounds(field)) {
      rounded.push_back(field);
    } else {
      kept.push_back('"' + field + '"');
    }
  }
  if (rounded.empty()) return std::nullopt;
  return Proposal{kept.empty() ? "[[subject]] without wide"
                               : fmt::format("[[subject]] wide = [{}]", fmt::join(kept, ", ")),
                  fmt::format("its callers have {} in {}: it rounds that to it first",
                              fmt::join(rounded, ", "), name(stored)),
                  "",
                  {}};
}

/// What becomes of the bounds of one fit under another.
std::string narrowing(const Fit& from, const Fit& to) {
  const double bounded = from.unbounded - to.unbounded;
  if (bounded > 0.0) return fmt::format("{:.2g} % more of the values have a bound", 100 * bounded);
  const double narrower = std::exp2(from.log_bound - to.log_bound);
  return fmt::format("the bounds are {:.2g} times as narrow", narrower);
}

}  // namespace

bool ArithmeticTrial::fits() const { return ratio <= reference::kThreshold; }

ArithmeticTrial try_arithmetic(const Brought& brought, Dtype dtype) {
  Observations observations(brought, dtype);
  const DeclaredArithmetic& declared = brought.subject.arithmetic;
  const Fit as_declared = observations.fit(declared);
  ArithmeticTrial trial{.dtype = dtype, .cases = observations.size(), .ratio = as_declared.ratio};
  if (trial.cases == 0) return trial;
  if (!trial.fits()) {
    observations.dispute(declared);
    if (const auto format = observations.rounds_fields_to()) {
      trial.proposal = {fmt::format("[[subject]] dtypes = [\"{}\"]", name(*format)),
                        "its callers have no wider fields: it rounds them to that first",
                        "",
                        {}};
      return trial;
    }
    if ((trial.proposal = fewer_wide_fields(observations, brought.subject, dtype))) return trial;
  }
  Fit fit;
  const auto found = narrowest(observations, declared, trial.fits(), dtype, fit);
  if (!found) return trial;
  const double narrower = as_declared.log_bound - fit.log_bound;
  if (trial.fits() && narrower < std::log2(kMuchNarrower)) return trial;
  trial.declaration = found;
  trial.worth = trial.fits() ? fmt::format("then {}", narrowing(as_declared, fit))
                             : fmt::format("then the worst error is {:.3g}", fit.ratio);
  const auto lines = impl::toml_lines(*found);
  trial.proposal = {
      fmt::format("[subject.arithmetic] {}",
                  lines.empty() ? "without a line" : fmt::format("{}", fmt::join(lines, "; "))),
      "it computes so; " + trial.worth,
      "",
      {}};
  return trial;
}

std::vector<ArithmeticTrial> try_arithmetic(const Brought& brought) {
  std::vector<ArithmeticTrial> trials;
  if (brought.loss.advice) return trials;  // its bounds are none
  for (const Dtype dtype : brought.dtypes) trials.push_back(try_arithmetic(brought, dtype));
  return trials;
}

}  // namespace lossgate::ci
