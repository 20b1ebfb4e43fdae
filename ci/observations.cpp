// SPDX-License-Identifier: Apache-2.0
#include "ci/observations.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "ci/declarations.h"
#include "ci/variant.h"
#include "properties/agreement.h"

namespace lossgate::ci {
namespace {

using impl::DeclaredArithmetic;
using properties::CaseStudy;

bool is_differentiable(const Field& field) { return field.role == Role::differentiable; }

}  // namespace

Observations::Observations(const Brought& brought, Dtype stored, std::vector<Case> cases)
    : brought_(brought), stored_(stored), subject_(guarded(brought.implementation)) {
  for (Case& c : cases) {
    c.split = {};
    if (subject_.unsupported(c)) continue;
    auto study = std::make_unique<CaseStudy>(brought.loss, std::move(c));
    LossResult actual = subject_.evaluate(brought.loss.signature, study->whole());
    if (study->refusal() || malformed(*study, actual)) continue;
    seen_.push_back({std::move(study), std::move(actual)});
  }
}

Fit Observations::fit(const DeclaredArithmetic& declared) {
  const Arithmetic arithmetic = arithmetic_of(declared);
  Fit fit;
  std::int64_t bounded = 0;
  for (Seen& one : seen_) {
    const auto outcome =
        properties::compare({.study = *one.study, .arithmetic = arithmetic, .actual = one.actual});
    fit.ratio = std::max(fit.ratio, outcome.worst_ratio);
    if (!fit.holds()) return fit;
    one.study->for_each_expected(arithmetic, false,
                                 [&](std::size_t, std::int64_t, const reference::Tracked& e) {
                                   const double size = std::fabs(static_cast<double>(e.v));
                                   if (!(e.err > 0.0 && size > 0.0 && std::isfinite(size))) return;
                                   fit.log_bound += std::log2(std::min(e.err, size));
                                   fit.unbounded += std::isinf(e.err);
                                   ++bounded;
                                 });
  }
  fit.hides = hides(arithmetic);
  if (bounded == 0) return fit;
  fit.log_bound /= static_cast<double>(bounded);
  fit.unbounded /= static_cast<double>(bounded);
  return fit;
}

void Observations::dispute(const DeclaredArithmetic& declared) {
  const Arithmetic arithmetic = arithmetic_of(declared);
  each_entry(arithmetic, [&](std::size_t, const OutputInfo& output, double actual, const auto& e) {
    const double accepted = properties::largest_accepted(arithmetic, output, e);
    disputed_.push_back(!(std::fabs(actual - e.v) <= accepted));
  });
}

bool Observations::insensitive() const {
  const double change = 1.0 + 64.0 * unit_roundoff(stored_);
  return same_share(is_differentiable, [&](double value) { return value * change; }) > 0.5;
}

std::optional<Dtype> Observations::rounds_fields_to() const {
  auto formats = narrower_formats(stored_);
  std::ranges::reverse(formats);
  for (const Dtype format : formats) {
    const auto rounded = [&](double value) { return round_to(format, value); };
    if (same_share(is_differentiable, rounded) == 1.0) return format;
  }
  return std::nullopt;
}

bool Observations::rounds(const std::string& field) const {
  const auto is_it = [&](const Field& other) { return other.name == field; };
  const auto rounded = [&](double value) { return round_to(stored_, value); };
  return same_share(is_it, rounded) == 1.0;
}

Arithmetic Observations::arithmetic_of(const DeclaredArithmetic& declared) const {
  impl::Subject subject = brought_.subject;
  subject.arithmetic = declared;
  return impl::brought_implementation(subject, brought_.loss.signature, brought_.session)
      .arithmetic(stored_);
}

/// Always in the same order.
template <class Visit>
void Observations::each_entry(const Arithmetic& arithmetic, Visit&& visit) {
  for (std::size_t at = 0; at < seen_.size(); ++at) {
    const Seen& one = seen_[at];
    one.study->for_each_expected(arithmetic, false,
                                 [&](std::size_t o, std::int64_t i, const reference::Tracked& e) {
                                   const OutputInfo& output = one.study->outputs()[o];
                                   visit(at, output, one.actual.find(output.name)->at(i), e);
                                 });
  }
}

/// Whether of a case all entries that are disputed have no digit, so that anything would hold.
bool Observations::hides(const Arithmetic& arithmetic) {
  if (disputed_.empty()) return false;
  std::vector<int> disputes(seen_.size()), digits(seen_.size());
  auto disputed = disputed_.begin();
  each_entry(arithmetic, [&](std::size_t at, const OutputInfo& output, double, const auto& e) {
    if (!*disputed++ || e.v == 0.0L) return;
    disputes[at] += 1;
    digits[at] += properties::largest_accepted(arithmetic, output, e) < std::fabs(e.v);
  });
  for (std::size_t at = 0; at < seen_.size(); ++at) {
    if (disputes[at] > 0 && digits[at] == 0) return true;
  }
  return false;
}

/// The share of results that stay as they are, bit for bit, when these fields are changed; 0 where
/// there are none.
template <class Wanted, class Change>
double Observations::same_share(Wanted&& wanted, Change&& change) const {
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
std::optional<Case> Observations::with_fields(Case c, Wanted&& wanted, Change&& change) const {
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

}  // namespace lossgate::ci
