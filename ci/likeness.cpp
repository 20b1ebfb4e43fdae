// SPDX-License-Identifier: Apache-2.0
#include "ci/likeness.h"

#include <algorithm>
#include <cmath>

#include "impl/external/declared_arithmetic.h"

namespace lossgate::ci {
namespace {

/// Relative to the largest entry of an output. A divisor's guard of 1e-8 is no other formula, and a
/// slip in one stands far above both.
constexpr double kTolerance = 1e-7, kNarrowTolerance = 1e-4;

/// What cancellation leaves in f32 of benign inputs, which are of the order of 1.
constexpr double kNoise = 1e-5;

/// Of the finite ones.
double largest(const std::vector<double>& entries) {
  double most = 0.0;
  for (const double entry : entries) {
    if (std::isfinite(entry)) most = std::max(most, std::fabs(entry));
  }
  return most;
}

bool within(const Values& actual, const Values& expected, const Values& margins, double tolerance) {
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const double scale = std::max(largest(actual[o]), largest(expected[o]));
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      if (actual[o][i] == expected[o][i] || std::isnan(expected[o][i])) continue;
      const double difference = std::fabs(actual[o][i] - expected[o][i]);
      if (!(difference <= tolerance * scale + margins[o][i])) return false;
    }
  }
  return true;
}

/// NaN where there is none. Where all is 0 it is any.
double factor_of(const Values& actual, const Values& expected, double tolerance) {
  double factor = 0.0;
  for (std::size_t o = 0; o < actual.size() && factor == 0.0; ++o) {
    const double least = 0.01 * largest(expected[o]);
    for (std::size_t i = 0; i < actual[o].size() && factor == 0.0; ++i) {
      if (std::fabs(expected[o][i]) > least) factor = actual[o][i] / expected[o][i];
    }
  }
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const double scale = std::max(largest(actual[o]), largest(expected[o]) * std::fabs(factor));
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      const double difference = actual[o][i] - factor * expected[o][i];
      if (!(std::fabs(difference) <= tolerance * scale)) return std::nan("");
    }
  }
  return factor;
}

/// The mean over outputs of what differs, as a share of what is there.
double distance_of(const Values& actual, const Values& expected) {
  double sum = 0.0;
  for (std::size_t o = 0; o < actual.size(); ++o) {
    double apart = 0.0, there = kNoise * static_cast<double>(actual[o].size());
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      apart += std::fabs(actual[o][i] - expected[o][i]);
      there += std::fabs(actual[o][i]) + std::fabs(expected[o][i]);
    }
    const double share = actual[o].empty() ? 0.0 : apart / there;
    sum += share <= 1.0 ? share : 1.0;  // NaN counts as nothing alike
  }
  return actual.empty() ? 0.0 : sum / static_cast<double>(actual.size());
}

struct Kept : reference::Sink<reference::Tracked> {
  Values values, margins;
  void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
    const auto at = static_cast<std::size_t>(index);
    values[output][at] = static_cast<double>(value.v);
    const double margin = reference::kThreshold * value.err + value.half;
    margins[output][at] = std::isfinite(margin) ? margin : 0.0;
  }
};

}  // namespace

std::vector<Reduction> reductions_of(const LossSignature& loss) {
  return loss.reductions.empty() ? std::vector{Reduction::none} : loss.reductions;
}

Formula::Formula(const reference::Loss& loss, LossSignature narrowed, Dtype dtype)
    : loss_(loss),
      dtype_(dtype),
      arithmetic_(impl::arithmetic_of(impl::DeclaredArithmetic{}, dtype)) {
  loss_.signature = std::move(narrowed);
  arithmetic_.ties_open = true;
}

Formula::Bounded Formula::evaluate(const Case& c, const Candidate& candidate) const {
  Case asked = c;
  asked.spec.reduction = candidate.reduction;
  for (const auto& [name, value] : candidate.options) asked.spec.set(name, value);
  follow(loss_.signature, asked.spec);
  for (const auto& [name, value] : candidate.options) asked.spec.set(name, value);
  const reference::Problem problem(loss_.signature, asked);
  Kept kept;
  for (const OutputInfo& output : problem.outputs) {
    kept.values.emplace_back(static_cast<std::size_t>(element_count(output.extents)), 0.0);
  }
  kept.margins = kept.values;
  reference::evaluate(loss_, problem, arithmetic_, kept);
  return {std::move(kept.values), std::move(kept.margins)};
}

Values Formula::values(const Case& c, const Candidate& candidate) const {
  return evaluate(c, candidate).values;
}

Closeness Formula::operator()(const Probe& probe, const Candidate& candidate) const {
  if (!probe.answer) return {};
  const auto [expected, margins] = evaluate(probe.c, candidate);
  const double tolerance = dtype_ == Dtype::f64 ? kTolerance : kNarrowTolerance;
  return {.equal = within(*probe.answer, expected, margins, tolerance),
          .rounded = within(*probe.answer, expected, margins, kNarrowTolerance),
          .factor = factor_of(*probe.answer, expected, tolerance),
          .distance = distance_of(*probe.answer, expected)};
}

bool Formula::differ(const Values& a, const Values& b) {
  for (std::size_t o = 0; o < a.size(); ++o) {
    const double scale = std::max(largest(a[o]), largest(b[o]));
    for (std::size_t i = 0; i < a[o].size(); ++i) {
      if (std::fabs(a[o][i] - b[o][i]) > 10 * kNarrowTolerance * scale) return true;
    }
  }
  return false;
}

}  // namespace lossgate::ci
