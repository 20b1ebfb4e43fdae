// SPDX-License-Identifier: Apache-2.0
#include "properties/filtered.h"

#include <algorithm>
#include <cstring>

#include "properties/allowance.h"
#include "reference/lanes/lanes.h"
#include "reference/spec/elements.h"

namespace lossgate::properties {
namespace {

using reference::any;
using reference::ApproximateEntries;
using reference::Approximation;
using reference::Doubles;
using reference::Formats;
using reference::kFilterSlack;
using reference::kLanes;
using reference::kThreshold;
using reference::Lanes;
using reference::larger;
using reference::Mask;
using reference::or_zero;
using reference::size_of_each;

/// What double has times these is surely less, or more, than what the reference has.
constexpr double kLess = 1.0 - 2.0 * kFilterSlack, kMore = 1.0 + 2.0 * kFilterSlack;

/// What the reference may have that leaves least room. The error counts T times beside value and
/// half-width, which are off by its slack.
template <class Expected>
Expected at_most(const Expected& x) {
  return {x.v, kMore * x.err, kMore * x.peak, x.half};
}

/// What was counted of entries that surely hold, several at a time.
class Count {
 public:
  /// Which of these do; none that is not finite.
  Mask add(const Formats& formats, Doubles actual, const Lanes& x) {
    const Doubles open = kFilterSlack * x.err;  // of the value, of the half-width and of its store
    const auto [exempt, scaled, allowed] = allowance_unless_zero(formats, x);
    const Doubles excess = size_of_each(actual - x.v) - exempt + 3.0 * open;
    const Doubles bound = kThreshold * allowed, value = size_of_each(x.v);
    const Mask zero = x.is_exact_zero(), bounded = ~zero & (allowed > 0.0);
    const Mask no_digit = bounded & (kLess * bound >= value + open);
    const Mask told = ~bounded | no_digit | (kMore * bound < value - open);
    const Mask near = told & (excess <= kThreshold * kLess * scaled);
    worst_ = larger(worst_, or_zero(~zero & (excess > 0.0), excess / (kLess * scaled)));
    no_digit_ -= no_digit;  // a mask that is set is -1
    return (zero & (actual == 0.0)) | (~zero & near & must_be_finite(formats, at_most(x)));
  }

  double worst() const {
    double worst = 0.0;
    for (int i = 0; i < kLanes; ++i) worst = std::max(worst, worst_[i]);
    return worst;
  }

  std::int64_t no_digit() const {
    std::int64_t count = 0;
    for (int i = 0; i < kLanes; ++i) count += no_digit_[i];
    return count;
  }

 private:
  Doubles worst_ = {};
  Mask no_digit_ = {};
};

/// What stands in the places of the output's entries.
std::vector<double> actual_of(const Comparison& comparison, const OutputInfo& output) {
  const Tensor& tensor = *comparison.actual.find(output.name);
  if (!comparison.moved) return elements_of(tensor);
  std::vector<double> actual(static_cast<std::size_t>(element_count(output.extents)));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    actual[i] = tensor.at(comparison.moved->index_of(output, tensor.extents, at));
  }
  return actual;
}

/// The first of them, and zeros where there are no more.
Doubles several(const double* entries, std::size_t left) {
  Doubles found = {};
  if (left >= kLanes) {
    std::memcpy(&found, entries, sizeof found);
  } else {
    for (std::size_t i = 0; i < left; ++i) found[i] = entries[i];
  }
  return found;
}

/// Whether every entry of the output surely holds; they are counted.
bool hold(Count& count, const Comparison& comparison, const OutputInfo& output,
          const ApproximateEntries& entries) {
  const Formats formats(output, comparison.arithmetic.compute);
  const std::size_t size = entries.size();
  const std::vector<double> actual = actual_of(comparison, output);
  const double *v = entries.v.data(), *err = entries.err.data(), *peak = entries.peak.data(),
               *half = entries.half.data();
  for (std::size_t i = 0; i < size; i += kLanes) {
    const auto of = [&](const double* parts) { return several(parts + i, size - i); };
    const Lanes expected = {of(v), of(err), of(peak), of(half)};
    if (any(~count.add(formats, of(actual.data()), expected))) return false;
  }
  return true;
}

}  // namespace

std::optional<Outcome> compare_filtered(const Comparison& comparison) {
  if (comparison.exact_values) return std::nullopt;
  const Approximation* expected =
      comparison.study.approximation(comparison.arithmetic, comparison.split);
  if (!expected) return std::nullopt;
  Count count;
  std::int64_t compared = 0;
  for (std::size_t o = 0; o < comparison.study.count(comparison.wanted); ++o) {
    if (!hold(count, comparison, comparison.study.outputs()[o], (*expected)[o])) {
      return std::nullopt;
    }
    compared += std::ssize((*expected)[o].v);
  }
  if (compared == 0) return std::nullopt;
  const bool digits = count.no_digit() < compared;
  return Outcome{.verdict = digits ? Verdict::held : Verdict::vacuous,
                 .reason = digits ? "" : "no digit",
                 .worst_ratio = count.worst(),
                 .compared = compared,
                 .no_digit = count.no_digit()};
}

bool surely_must_be_finite(CaseStudy& study, const Arithmetic& arithmetic,
                           const std::function<bool(const OutputInfo&)>& asked) {
  const Approximation* expected = study.approximation(arithmetic, false);
  for (std::size_t o = 0; expected && o < expected->size(); ++o) {
    const OutputInfo& output = study.outputs()[o];
    const Formats formats(output, arithmetic.compute);
    const ApproximateEntries& entries = (*expected)[o];
    for (std::size_t i = 0; asked(output) && i < entries.size(); ++i) {
      if (must_be_finite(formats, at_most(entries[i]))) return true;
    }
  }
  return false;
}

}  // namespace lossgate::properties
