// SPDX-License-Identifier: Apache-2.0
#include "properties/filtered.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/allowance.h"

namespace lossgate::properties {
namespace {

using reference::Approximate;
using reference::Approximation;
using reference::Formats;
using reference::kFilterSlack;
using reference::kThreshold;

/// The largest that the reference may have in each place.
Approximate at_most(const Approximate& x) {
  const double more = kFilterSlack * x.err;
  const double peak = x.peak + kFilterSlack * x.peak + more;
  return {std::fabs(x.v) + more, x.err + more, peak, x.half + more};
}

/// What was counted of entries that surely hold.
struct Count {
  std::int64_t compared = 0, no_digit = 0;
  double worst = 0.0;

  /// Whether this one does; false of what is not finite, too.
  bool add(const Formats& formats, double actual, const Approximate& x) {
    constexpr double kLess = 1.0 - 2.0 * kFilterSlack, kMore = 1.0 + 2.0 * kFilterSlack;
    if (!must_be_finite(formats, at_most(x))) return false;
    const double open = kFilterSlack * x.err;  // of the value, of the half-width and of its store
    const auto [exempt, scaled, allowed] = allowance(formats, x, false);
    const double excess = std::fabs(actual - x.v) - exempt + 3.0 * open;
    if (!(excess <= kThreshold * kLess * scaled)) return false;
    if (excess > 0.0) worst = std::max(worst, excess / (kLess * scaled));
    const double bound = kThreshold * allowed, value = std::fabs(x.v);
    const bool without_digit = kLess * bound >= value + open;
    if (allowed > 0.0 && !without_digit && !(kMore * bound < value - open)) return false;
    no_digit += allowed > 0.0 && without_digit;
    ++compared;
    return true;
  }
};

/// Nothing where an entry of the output may not hold.
std::optional<Count> count(const Comparison& comparison, const OutputInfo& output, Count counted,
                           const std::vector<Approximate>& entries) {
  const Formats formats(output, comparison.arithmetic.compute);
  const Tensor& actual = *comparison.actual.find(output.name);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    if (comparison.moved) at = comparison.moved->index_of(output, actual.extents, at);
    if (!counted.add(formats, actual.at(at), entries[i])) return std::nullopt;
  }
  return counted;
}

}  // namespace

std::optional<Outcome> compare_filtered(const Comparison& comparison) {
  if (comparison.exact_values) return std::nullopt;
  const Approximation* expected =
      comparison.study.approximation(comparison.arithmetic, comparison.split);
  if (!expected) return std::nullopt;
  std::optional<Count> counted = Count();
  for (std::size_t o = 0; counted && o < comparison.study.count(comparison.wanted); ++o) {
    counted = count(comparison, comparison.study.outputs()[o], *counted, (*expected)[o]);
  }
  if (!counted || counted->compared == 0) return std::nullopt;
  const bool digits = counted->no_digit < counted->compared;
  return Outcome{.verdict = digits ? Verdict::held : Verdict::vacuous,
                 .reason = digits ? "" : "no digit",
                 .worst_ratio = counted->worst,
                 .compared = counted->compared,
                 .no_digit = counted->no_digit};
}

bool surely_must_be_finite(CaseStudy& study, const Arithmetic& arithmetic,
                           const std::function<bool(const OutputInfo&)>& asked) {
  const Approximation* expected = study.approximation(arithmetic, false);
  for (std::size_t o = 0; expected && o < expected->size(); ++o) {
    const OutputInfo& output = study.outputs()[o];
    const Formats formats(output, arithmetic.compute);
    const auto must = [&](const Approximate& x) { return must_be_finite(formats, at_most(x)); };
    if (asked(output) && std::ranges::any_of((*expected)[o], must)) return true;
  }
  return false;
}

}  // namespace lossgate::properties
