// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "reference/adversary.h"
#include "reference/precise.h"
#include "reference/problem.h"
#include "reference/reference.h"
#include "reference/textbook.h"
#include "reference/tracked.h"

/// The reference held against MPFR, and its bounds against implementations that keep the declared
/// arithmetic, entry by entry. Nothing but tests and evidence includes this file: it needs MPFR.
namespace lossgate::fuzz {

template <class S>
class Collected : public reference::Sink<S> {
 public:
  explicit Collected(const reference::Problem& problem) {
    for (const OutputInfo& output : problem.outputs) {
      values_.emplace_back(static_cast<std::size_t>(element_count(output.extents)));
    }
  }
  void entry(std::size_t output, std::int64_t index, const S& value) override {
    values_[output][static_cast<std::size_t>(index)] = value;
  }
  const std::vector<S>& operator[](std::size_t output) const { return values_[output]; }

 private:
  std::vector<std::vector<S>> values_;
};

/// One scalar's instance of a loss.
template <class S>
using Evaluate = void (*)(const reference::Inputs<S>&, const reference::Outputs<S>&);

/// A loss as the reference computes it, and by each scalar that certifies it.
struct CertifiedLoss {
  const reference::Loss& loss;
  Evaluate<reference::Precise> precise;
  Evaluate<reference::Textbook> textbook;
  Evaluate<reference::Adversary> adversary;
};

/// Of the catalog, in its order: compiled once for all who certify.
const std::vector<CertifiedLoss>& certified_losses();

template <class S>
Collected<S> evaluated(Evaluate<S> evaluate, const reference::Problem& problem,
                       std::string_view form) {
  Collected<S> collected(problem);
  evaluate(reference::Inputs<S>(problem, form), reference::Outputs<S>(problem, collected));
  return collected;
}

/// The index-th way to compute in, or from, this format: orders of sums, stores, forms, exp.
inline Arithmetic arithmetic_variant(const LossSignature& signature, Dtype dtype, int index) {
  constexpr SumRule kOrders[] = {{0.0, SumOrder::pairwise, 1.0},
                                 {0.0, SumOrder::lanes, 8.0},
                                 {0.0, SumOrder::blocked, 16.0},
                                 {0.0, SumOrder::sequential, 1.0}};
  const bool widens = size_of(dtype) == 2 && index % 3 == 1;
  const auto& forms = signature.forms;
  Arithmetic a =
      plain_arithmetic(widens ? Dtype::f32 : dtype,
                       forms.empty() ? "" : forms[static_cast<std::size_t>(index) % forms.size()]);
  const double roundoff = a.sum.roundoff;
  a.sum = kOrders[index % 4];
  const bool accumulates_wider = size_of(dtype) == 2 && index % 3 == 2;
  a.sum.roundoff = accumulates_wider ? unit_roundoff(Dtype::f32) : roundoff;
  if (accumulates_wider) a.matmul.roundoff = a.sum.roundoff;
  if (widens) {
    const Store stored = {.roundoff = unit_roundoff(dtype),
                          .eta = min_subnormal(dtype),
                          .largest = max_finite(dtype)};
    for (Stage stage : {Stage::logits, Stage::log_prob, Stage::per_token, Stage::gradient}) {
      a.stage(stage) = stored;
    }
    // A sum of parts has no range of its own.
    if (dtype == Dtype::bf16) a.stage(Stage::accumulate) = stored;
  }
  if (index % 5 == 4) a.math.exp_slope = 2.0;
  return a;
}

/// One entry as the reference bounds it, as it is, and as two implementations give it.
struct CertifiedEntry {
  std::size_t output;
  std::int64_t index;
  bool declared;  ///< the bound is that of the form which is evaluated, not the widest
  const reference::Tracked& expected;
  const reference::Precise& exact;
  double stored;              ///< error of the last store
  double own;                 ///< of the reference, beyond the half-width
  reference::Real computed;   ///< by one that rounds as hardware does, before its last store
  reference::Real textbook;   ///< the same, stored
  reference::Real adversary;  ///< one that errs by all that is allowed

  double allowed() const { return expected.err + stored; }

  /// A half-width has 53 bits only.
  bool reference_is_certain() const {
    const double share = expected.half > 0.0 ? 1.0 : 0.01;
    return allowed() == 0.0 ? own <= 0.0 : own <= share * allowed();
  }

  /// Error beyond what is right, as a share of what is allowed.
  double ratio(reference::Real actual, double allowed_error) const {
    // Between undecided branches the truth is an interval around the reference.
    const reference::Precise centre = expected.half > 0.0 ? reference::Precise(expected.v) : exact;
    const double excess =
        std::isfinite(actual)
            ? static_cast<double>(reference::distance(reference::Precise(actual), centre) -
                                  expected.half)
            : std::numeric_limits<double>::infinity();
    return excess <= 0.0 ? 0.0 : excess / allowed_error;
  }
  double ratio(reference::Real actual) const { return ratio(actual, allowed()); }
};

/// What no implementation is held to: it is beyond a format, or whatever it is made of may be, or
/// nothing is known of it though all of that fits.
struct Unjudged {
  std::int64_t beyond_range = 0, without_bound = 0;
};

/// Calls `visit` with each entry that must be finite and has a bound; returns how many have not.
/// `exact` is the case in the same form. An odd `index` turns the adversary round, and every fourth
/// leaves the form undeclared.
template <class Visit>
Unjudged for_each_certified(const CertifiedLoss& certified, const reference::Problem& problem,
                            const Arithmetic& arithmetic,
                            const Collected<reference::Precise>& exact, int index,
                            const Visit& visit) {
  using namespace reference;
  const Arithmetic scaled = behind(problem.c.upstream, arithmetic);
  const ArithmeticScope scope(scaled);
  const bool undeclared = index % 4 == 3;
  const auto tracked =
      evaluated(certified.loss.evaluate, problem, undeclared ? "" : arithmetic.form);
  const auto textbook = evaluated(certified.textbook, problem, arithmetic.form);
  Adversary::turn = index % 2 == 0 ? 1.0L : -1.0L;
  const auto adversary = evaluated(certified.adversary, problem, arithmetic.form);
  const double largest_computed = max_finite(arithmetic.compute);
  Unjudged unjudged;
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    const OutputInfo& output = problem.outputs[o];
    for (std::size_t i = 0; i < tracked[o].size(); ++i) {
      const Tracked& x = tracked[o][i];
      const bool bounded = std::isfinite(x.err) && std::isfinite(x.half);
      if (!bounded && std::isfinite(x.v) && x.peak <= largest_computed) {
        ++unjudged.without_bound;
        continue;
      }
      if (!bounded || !std::isfinite(x.v) || !properties::must_be_finite(arithmetic, output, x)) {
        ++unjudged.beyond_range;
        continue;
      }
      const auto largest = static_cast<double>(std::fabs(x.v)) + x.half;
      const double stored = x.is_exact_zero() ? 0.0 : properties::storage_error(output, largest);
      const Adversary& foe = adversary[o][i];
      visit(CertifiedEntry{.output = o,
                           .index = static_cast<std::int64_t>(i),
                           .declared = !undeclared,
                           .expected = x,
                           .exact = exact[o][i],
                           .stored = stored,
                           .own = static_cast<double>(distance(Precise(x.v), exact[o][i]) - x.half),
                           .computed = textbook[o][i].v,
                           .textbook = round_to(output.dtype, textbook[o][i].v),
                           .adversary = foe.v + (foe.v < foe.truth ? -stored : stored)});
    }
  }
  return unjudged;
}

}  // namespace lossgate::fuzz
