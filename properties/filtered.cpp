// SPDX-License-Identifier: Apache-2.0
#include "properties/filtered.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lossgate::properties {
namespace {

using reference::Approximate;
using reference::Approximation;
using reference::kFilterSlack;
using reference::kThreshold;

/// The largest that the reference may have in each place.
Approximate at_most(const Approximate& x) {
  const double more = kFilterSlack * x.err;
  const auto raised = [&](double size) { return size + kFilterSlack * size + more; };
  return {raised(std::fabs(x.v)), x.err + more, raised(x.peak), raised(x.half)};
}

/// Counts what surely holds in one output.
class Certain {
 public:
  Certain(const Comparison& comparison, const OutputInfo& output)
      : comparison_(comparison), output_(output), actual_(*comparison.actual.find(output.name)) {}

  /// Whether every entry holds for sure.
  bool all_hold(const std::vector<Approximate>& entries, Outcome& outcome) const {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!holds(actual_.at(place(static_cast<std::int64_t>(i))), entries[i], outcome)) {
        return false;
      }
    }
    return true;
  }

 private:
  std::int64_t place(std::int64_t index) const {
    if (!comparison_.moved) return index;
    return comparison_.moved->index_of(output_, actual_.extents, index);
  }

  bool holds(double actual, const Approximate& x, Outcome& outcome) const {
    // False of what is not finite, too.
    if (!must_be_finite(comparison_.arithmetic, output_, at_most(x))) return false;
    const double distance = std::fabs(actual - x.v), open = kFilterSlack * x.err;
    const auto [exempt, scaled, allowed] = allowance(comparison_.arithmetic, output_, x, false);
    const double excess = distance + 2.0 * open - exempt * (1.0 - 2.0 * kFilterSlack);
    const double ratio = excess <= 0.0 ? 0.0 : excess / (scaled * (1.0 - 2.0 * kFilterSlack));
    if (!(ratio <= kThreshold)) return false;
    const double bound = kThreshold * allowed, value = std::fabs(x.v);
    const bool no_digit = bound * (1.0 - 2.0 * kFilterSlack) >= value + open;
    const bool digit = bound * (1.0 + 2.0 * kFilterSlack) < value - open;
    if (allowed > 0.0 && !no_digit && !digit) return false;
    outcome.no_digit += allowed > 0.0 && no_digit;
    outcome.worst_ratio = std::max(outcome.worst_ratio, ratio);
    ++outcome.compared;
    return true;
  }

  const Comparison& comparison_;
  const OutputInfo& output_;
  const Tensor& actual_;
};

}  // namespace

std::optional<Outcome> compare_filtered(const Comparison& comparison) {
  if (comparison.exact_values) return std::nullopt;
  const Approximation* expected =
      comparison.study.approximation(comparison.arithmetic, comparison.split);
  if (!expected) return std::nullopt;
  Outcome outcome;
  for (std::size_t o = 0; o < comparison.study.count(comparison.wanted); ++o) {
    const Certain certain(comparison, comparison.study.outputs()[o]);
    if (!certain.all_hold((*expected)[o], outcome)) return std::nullopt;
  }
  if (outcome.compared == 0) return std::nullopt;
  if (outcome.no_digit == outcome.compared) {
    outcome.verdict = Verdict::vacuous;
    outcome.reason = "no digit";
  }
  return outcome;
}

bool surely_must_be_finite(CaseStudy& study, const Arithmetic& arithmetic,
                           const std::function<bool(const OutputInfo&)>& asked) {
  const Approximation* expected = study.approximation(arithmetic, false);
  for (std::size_t o = 0; expected && o < expected->size(); ++o) {
    const OutputInfo& output = study.outputs()[o];
    if (asked(output) && std::ranges::any_of((*expected)[o], [&](const Approximate& x) {
          return must_be_finite(arithmetic, output, at_most(x));
        })) {
      return true;
    }
  }
  return false;
}

}  // namespace lossgate::properties
