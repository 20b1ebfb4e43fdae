// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/given_case.h"
#include "reference/losses/catalog.h"
#include "reference/precise.h"
#include "reference/reference.h"

/// The hand-derived gradients of every loss against automatic differentiation of its forward, at
/// 256 bits, where rounding hides nothing.
namespace lossgate::reference {
namespace {

constexpr int kCases = 100;

/// Keeps every entry and counts how often each was written.
template <class S>
struct Collected : Sink<S> {
  explicit Collected(const Problem& problem) {
    for (const OutputInfo& output : problem.outputs) {
      const auto size = static_cast<std::size_t>(element_count(output.extents));
      values.emplace_back(size);
      written.emplace_back(size, 0);
    }
  }
  void entry(std::size_t output, std::int64_t index, const S& value) override {
    values.at(output).at(static_cast<std::size_t>(index)) = value;
    ++written[output][static_cast<std::size_t>(index)];
  }
  std::vector<std::vector<S>> values;
  std::vector<std::vector<int>> written;
};

/// As the reference evaluates it: what it is compiled to is asked, not compiled again.
Collected<Tracked> tracked(const Loss& loss, const Problem& problem, std::string_view form) {
  Collected<Tracked> collected(problem);
  loss.evaluate(Inputs<Tracked>(problem, form), Outputs<Tracked>(problem, collected));
  return collected;
}

/// The derivatives are with respect to the stored entry `key`, or 0 where it is -1.
template <class L>
Collected<Dual> differentiated(const Problem& problem, std::string_view form, std::int64_t key) {
  Dual::seed = key;
  Collected<Dual> collected(problem);
  L::template evaluate<Dual>(Inputs<Dual>(problem, form), Outputs<Dual>(problem, collected));
  Dual::seed = -1;
  return collected;
}

/// What the gradients differentiate: the loss times its upstream gradient.
template <class L>
Precise derivative_of_objective(const Problem& problem, std::string_view form, std::int64_t key) {
  return Precise(problem.c.upstream) * differentiated<L>(problem, form, key).values[0][0].d;
}

/// 2^-180 of the largest operand: what 256 bits leave after every cancellation short of a bug.
bool equal(const Precise& a, const Precise& b, double peak) {
  return distance(a, b) <= std::ldexp(static_cast<Real>(peak), -180);
}

template <class L>
testing::AssertionResult gradients_agree(const Loss& loss, const Problem& problem,
                                         std::string_view form) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f64, form);
  const ArithmeticScope scope(arithmetic);
  const auto hand = differentiated<L>(problem, form, -1);
  const auto bounded = tracked(loss, problem, form);
  std::int64_t key = 0;
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    if (problem.outputs[o].kind != OutputKind::gradient) continue;
    for (std::size_t i = 0; i < hand.values[o].size(); ++i, ++key) {
      const double peak = bounded.values[o][i].peak;
      if (!std::isfinite(peak)) continue;
      bool same = false;
      Precise derivative;
      for (Dual::tie = 0; Dual::tie < 2 && !same; ++Dual::tie) {
        derivative = derivative_of_objective<L>(problem, form, key);
        same = equal(hand.values[o][i].v, derivative, peak);
      }
      Dual::tie = 0;
      if (same) continue;
      return testing::AssertionFailure()
             << problem.outputs[o].name << "[" << i << "]: by hand " << hand.values[o][i].v.number()
             << ", differentiated " << derivative.number();
    }
  }
  return testing::AssertionSuccess();
}

using Check = std::function<testing::AssertionResult(const Loss&, const Problem&,
                                                     const std::string& form, SmallCases&)>;

/// Expects `check` of small cases of the loss, and stops at the first that fails.
void expect_for_small_cases(const Loss& loss, const Check& check) {
  SmallCases source(loss.signature, 1);
  const auto& forms = loss.signature.forms;
  int accepted = 0;
  for (int i = 0; i < kCases; ++i) {
    const Case c = source.draw(i % 2 == 0 ? Dtype::f64 : Dtype::f32);
    if (expected_refusal(loss, c)) continue;
    ++accepted;
    const std::string form = forms.empty() ? "" : forms[static_cast<std::size_t>(i) % forms.size()];
    const testing::AssertionResult result = check(loss, Problem(loss.signature, c), form, source);
    EXPECT_TRUE(result) << loss.signature.id << ", small case " << i;
    if (!result) return;
  }
  EXPECT_GT(accepted, kCases / 4) << loss.signature.id << " refuses its small cases";
}

void expect_for_small_cases(const Check& check) {
  for (const Loss& loss : catalog()) expect_for_small_cases(loss, check);
}

TEST(Gradients, AreTheDerivativesOfTheLoss) {
  std::map<std::string, testing::AssertionResult (*)(const Loss&, const Problem&, std::string_view)>
      agree;
  Catalog::for_each([&]<class L>() { agree[L::signature().id] = &gradients_agree<L>; });
  expect_for_small_cases(
      [&](const Loss& loss, const Problem& problem, const std::string& form, SmallCases&) {
        if (problem.c.spec.reduction == Reduction::none) return testing::AssertionSuccess();
        return agree.at(loss.signature.id)(loss, problem, form);
      });
}

TEST(Outputs, AreWrittenExactlyOnce) {
  expect_for_small_cases(
      [](const Loss& loss, const Problem& problem, const std::string& form, SmallCases&) {
        const Arithmetic arithmetic = plain_arithmetic(Dtype::f64, form);
        const ArithmeticScope scope(arithmetic);
        const auto collected = tracked(loss, problem, form);
        for (std::size_t o = 0; o < collected.written.size(); ++o) {
          for (int count : collected.written[o]) {
            if (count == 1) continue;
            return testing::AssertionFailure()
                   << problem.outputs[o].name << " has an entry written " << count << " times";
          }
        }
        return testing::AssertionSuccess();
      });
}

/// Equal to the last bit, NaN included.
bool identical(const Tracked& a, const Tracked& b) {
  const auto same = [](auto x, auto y) {
    return (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y);
  };
  return same(a.v, b.v) && same(a.err, b.err) && same(a.peak, b.peak) && same(a.half, b.half);
}

TEST(MaskedPositions, AreNeverRead) {
  expect_for_small_cases([](const Loss& loss, const Problem& problem, const std::string& form,
                            SmallCases& source) {
    const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, form);
    const ArithmeticScope scope(arithmetic);
    Case other = problem.c;
    source.poison_masked(other);
    const auto once = tracked(loss, problem, form);
    const auto again = tracked(loss, Problem(problem.signature, other), form);
    for (std::size_t o = 0; o < once.values.size(); ++o) {
      for (std::size_t i = 0; i < once.values[o].size(); ++i) {
        if (identical(once.values[o][i], again.values[o][i])) continue;
        return testing::AssertionFailure() << problem.outputs[o].name << "[" << i << "] changes";
      }
    }
    return testing::AssertionSuccess();
  });
}

TEST(MaskedPositions, HaveExactlyZeroOutputs) {
  expect_for_small_cases(
      [](const Loss& loss, const Problem& problem, const std::string& form, SmallCases&) {
        const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, form);
        const ArithmeticScope scope(arithmetic);
        const auto collected = tracked(loss, problem, form);
        for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
          const auto& axes = problem.outputs[o].axes;
          if (axes.size() < 2 || axes[0] != Axis::sequences || axes[1] != Axis::tokens) continue;
          const std::size_t each = collected.values[o].size() / problem.valid.size();
          for (std::size_t i = 0; i < collected.values[o].size(); ++i) {
            if (problem.valid[i / each] || collected.values[o][i].is_exact_zero()) continue;
            return testing::AssertionFailure() << problem.outputs[o].name << "[" << i << "]";
          }
        }
        return testing::AssertionSuccess();
      });
}

}  // namespace
}  // namespace lossgate::reference
