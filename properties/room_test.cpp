// SPDX-License-Identifier: Apache-2.0
#include "properties/room.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "properties/property.h"

namespace lossgate::properties {
namespace {

/// What a function makes of one number: its value and its derivative.
template <class F>
using Point = std::pair<F, F>;

/// A function as its author wrote it, in the format in which it is called.
struct Written {
  std::function<Point<float>(float x, float weight)> narrow;
  std::function<Point<double>(double x, double weight)> wide;
};

template <class Function>
Written written(const Function& f) {
  return {.narrow = [f](float x, float weight) { return f(x, weight); },
          .wide = [f](double x, double weight) { return f(x, weight); }};
}

const Written kNaiveSoftplus = written([]<class F>(F x, F) {
  const F e = std::exp(x);
  return Point<F>{std::log(F(1) + e), e / (F(1) + e)};
});
const Written kSoftplus = written([]<class F>(F x, F) {
  const F e = std::exp(-std::fabs(x));
  return Point<F>{std::max(x, F(0)) + std::log1p(e), (x > F(0) ? F(1) : e) / (F(1) + e)};
});
const Written kLogOfAnExp = written([]<class F>(F x, F) {
  return Point<F>{std::log(std::exp(x)), F(1)};
});
const Written kWeight = written([]<class F>(F x, F weight) {
  const F w = std::exp(x) * weight;
  return Point<F>{w, w};
});
const Written kWeightAndLiteral = written([]<class F>(F x, F weight) {
  const F w = std::exp(x) * weight * F(1e-8);
  return Point<F>{w, w};
});
const Written kQuarterOfASquare = written([]<class F>(F x, F) {
  return Point<F>{F(0.25) * (x * x), F(0.5) * x};
});
const Written kGemanMcClure = written([]<class F>(F x, F) {
  const F square = x * x, rest = F(1) + square;
  return Point<F>{square / rest, F(2) * x / rest / rest};
});
/// Singular at a tenth, which f32 holds and f64 misses.
const Written kLogDistance = written([]<class F>(F x, F) {
  const F distance = x - F(0.1);
  return Point<F>{std::log(std::fabs(distance)), F(1) / distance};
});

/// The sum of the function over sequences, each with a number x and a weight.
LossSignature signature() {
  LossSignature made;
  made.id = "mine";
  made.fields = {{.name = "x",
                  .role = Role::differentiable,
                  .quantity = Quantity::value,
                  .axes = {Axis::sequences}},
                 {.name = "weight",
                  .role = Role::constant,
                  .quantity = Quantity::advantage,
                  .axes = {Axis::sequences}}};
  made.options = {{.name = "scale", .standard = 1.0, .low = 0.0, .high = 1e30}};
  made.reductions = {Reduction::sum};
  return made;
}

Case numbers(const std::vector<std::pair<double, double>>& rows) {
  Case c;
  c.spec = standard_spec(signature());
  const auto n = static_cast<std::int64_t>(rows.size());
  c.shape[Axis::sequences] = n;
  c.batch.fields = {{"x", Tensor::zeros(Dtype::f32, {n})},
                    {"weight", Tensor::zeros(Dtype::f32, {n})}};
  for (std::int64_t i = 0; i < n; ++i) {
    c.batch.at("x").set(i, rows[static_cast<std::size_t>(i)].first);
    c.batch.at("weight").set(i, rows[static_cast<std::size_t>(i)].second);
  }
  return c;
}

template <class F, class Function>
std::vector<double> results(const Function& f, const Case& c) {
  std::vector<double> all = {0.0};
  F loss = 0;
  for (std::int64_t i = 0; i < c.shape[Axis::sequences]; ++i) {
    const auto [value, slope] =
        f(static_cast<F>(c.batch.at("x").at(i)), static_cast<F>(c.batch.at("weight").at(i)));
    loss += value;
    all.push_back(static_cast<double>(slope));
  }
  all.front() = static_cast<double>(loss);
  return all;
}

constexpr reference::Tracked kNothingSaid{std::numeric_limits<reference::Real>::quiet_NaN(), 0.0,
                                          0.0, 0.0};

/// The function in f64 stands for a reference, which keeps half of its digits.
reference::Loss advised(const Written& function) {
  reference::Loss loss{.signature = signature(), .evaluate = nullptr, .refuse = [](const Case&) {
                         return std::optional<Refusal>();
                       }};
  const auto values = [function](const reference::Problem& problem, const Arithmetic& arithmetic,
                                 reference::Sink<reference::Tracked>& sink) {
    const std::vector<double> all = results<double>(function.wide, problem.c);
    for (std::size_t o = 0, i = 0; o < problem.outputs.size(); ++o) {
      for (std::int64_t at = 0; at < element_count(problem.outputs[o].extents); ++at, ++i) {
        const double size = std::fabs(all[i]), err = std::sqrt(arithmetic.roundoff) * size;
        const reference::Tracked value{all[i], err, size, 0.0};
        sink.entry(o, at, std::isfinite(size) ? value : kNothingSaid);
      }
    }
  };
  loss.advice = {.values = values, .judges = [](const Arithmetic&) { return false; }};
  return loss;
}

impl::Implementation called(const Written& function) {
  impl::Implementation made;
  made.name = made.loss = "mine";
  made.arithmetic = [](Dtype) { return plain_arithmetic(Dtype::f32, ""); };
  made.evaluate = [function](const LossSignature& asked, const Case& c) {
    const std::vector<double> all = results<float>(function.narrow, c);
    LossResult result;
    for (const OutputInfo& info : outputs_of(asked, c)) {
      result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
      Tensor& tensor = result.outputs.back().tensor;
      const bool is_loss = info.kind == OutputKind::loss;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        tensor.set(i, all[is_loss ? 0 : static_cast<std::size_t>(i) + 1]);
      }
    }
    return result;
  };
  return made;
}

Outcome asked(const Written& function, const Case& c, const char* property = "finite_forward") {
  const reference::Loss loss = advised(function);
  CaseStudy study(loss, c);
  const impl::Implementation implementation = called(function);
  Evaluation evaluation(study, implementation);
  return find_property(property)->check(evaluation);
}

TEST(RuleE8, ALossThatF64HasIsFiniteWhereThereIsRoom) {
  const Case c = numbers({{1.0, 1.0}, {100.0, 1.0}});
  for (const char* property : {"finite_forward", "finite_backward"}) {
    const Outcome outcome = asked(kNaiveSoftplus, c, property);
    ASSERT_EQ(outcome.verdict, Verdict::violated) << property;
    EXPECT_NE(outcome.violation->detail.find("in f64 the same function has numbers"),
              std::string::npos);
    EXPECT_EQ(asked(kSoftplus, c, property).verdict, Verdict::held) << property;
  }
  EXPECT_EQ(asked(kNaiveSoftplus, numbers({{1.0, 1.0}, {50.0, 1.0}})).verdict, Verdict::held);
  EXPECT_EQ(asked(kLogOfAnExp, numbers({{-120.0, 1.0}})).verdict, Verdict::violated)
      << "what is 0 in f32 alone";
}

TEST(RuleE8, AZeroThatMeetsAnInfinityOfTheFunctionsOwnIsAFinding) {
  EXPECT_EQ(asked(kWeight, numbers({{90.0, 0.0}})).verdict, Verdict::violated);
}

TEST(RuleE8, WhatInputsOverflowByThemselvesIsNoFinding) {
  const auto verdict = [](const Written& function, double x, double weight) {
    return asked(function, numbers({{x, weight}})).verdict;
  };
  EXPECT_EQ(verdict(kWeight, 90.0, 1.0), Verdict::vacuous) << "f32 has no such number";
  EXPECT_EQ(verdict(kWeight, 90.0, 1e-5), Verdict::note) << "nor the weight that is made smaller";
  EXPECT_EQ(verdict(kWeight, 90.0, 1e-25), Verdict::note) << "by however small an advantage";
  EXPECT_EQ(verdict(kWeightAndLiteral, 88.8, 1e-12), Verdict::note) << "nor by one and a literal";
  EXPECT_EQ(verdict(kQuarterOfASquare, 2e19, 1.0), Verdict::note);
  EXPECT_EQ(verdict(kGemanMcClure, 1e25, 1.0), Verdict::note) << "the square of an input";
  EXPECT_EQ(verdict(kNaiveSoftplus, 800.0, 1.0), Verdict::vacuous) << "f64 has none, either";
}

TEST(RuleE8, ASingularityThatRoundingHitsIsNoFinding) {
  const Case c = numbers({{static_cast<double>(0.1f), 1.0}});
  EXPECT_EQ(asked(kLogDistance, c).verdict, Verdict::note);
}

TEST(RuleE8, OptionsAndTheUpstreamGradientTakeOfTheRoom) {
  const auto verdict = [](auto&& change) {
    Case c = numbers({{100.0, 1.0}});
    change(c);
    return asked(kNaiveSoftplus, c).verdict;
  };
  EXPECT_EQ(verdict([](Case& c) { c.spec.set("scale", 1e10); }), Verdict::violated);
  EXPECT_EQ(verdict([](Case& c) { c.spec.set("scale", 1e25); }), Verdict::note);
  EXPECT_EQ(verdict([](Case& c) { c.spec.set("scale", 1e-25); }), Verdict::note);
  EXPECT_EQ(verdict([](Case& c) { c.spec.set("scale", 0.0); }), Verdict::violated);
  EXPECT_EQ(verdict([](Case& c) { c.upstream = 65536.0; }), Verdict::violated);
  EXPECT_EQ(verdict([](Case& c) { c.upstream = 1e25; }), Verdict::note);
}

TEST(RuleE8, OfInputsThatAreNotFiniteNothingIsSaid) {
  EXPECT_NE(asked(kNaiveSoftplus, numbers({{100.0, HUGE_VAL}})).verdict, Verdict::violated);
}

}  // namespace
}  // namespace lossgate::properties
