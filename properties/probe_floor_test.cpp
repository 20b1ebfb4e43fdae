// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// A token's surprise, -log p, and how fast it grows with that of the formula.
struct Term {
  double value, slope;
};

/// Cross-entropy's mean over tokens in f32 alone, of the terms that are made of the right ones.
impl::Implementation of_terms(const std::function<Term(double)>& term) {
  impl::Implementation fake =
      answering("cross_entropy", nullptr, [term](const Case& c, LossResult& result) {
        const std::int64_t vocab = c.shape[Axis::vocab];
        double tokens = 0.0, loss = 0.0;
        Tensor& terms = output(result, "per_token");
        Tensor& gradient = output(result, "gradient.logits");
        at_positions(c, true, [&](std::int64_t p) {
          const Term made = term(terms.at(p));
          terms.set(p, made.value);
          loss += made.value;
          ++tokens;
          for (std::int64_t v = p * vocab; v < (p + 1) * vocab; ++v) {
            gradient.set(v, made.slope * gradient.at(v));
          }
        });
        if (tokens > 0.0) output(result, "loss").set(0, loss / tokens);
      });
  fake.unsupported = [](const Case& c) -> decltype(fake.unsupported(c)) {
    const bool mean = c.spec.reduction == Reduction::token_mean;
    if (mean && c.batch.at("logits").dtype == Dtype::f32) return std::nullopt;
    return "the mean over tokens in f32 alone";
  };
  return fake;
}

/// One token is as good as impossible.
Case with_an_unlikely_token(double logit = -40.0) {
  Case c = ordinary_case("cross_entropy", Dtype::f32);
  c.spec.reduction = Reduction::token_mean;
  c.batch.at("logits").set(c.batch.at("label").integer_at(0), logit);
  return c;
}

TEST(ProbeFloor, NameAConstantBesideAProbability) {
  const auto guarded = of_terms([](double x) {
    const double p = std::exp(-x);
    return Term{-std::log(p + 1e-8), p / (p + 1e-8)};
  });
  expect_shown(guarded, with_an_unlikely_token(), "epsilon in a logarithm",
               "of an unlikely token the answer is that with 1.0e-08 added to its probability");
}

TEST(ProbeFloor, NameAFloorOfAProbabilityAndOfALogarithm) {
  const auto clamped = [](double most) {
    return of_terms([most](double x) { return Term{std::min(x, most), x < most ? 1.0 : 0.0}; });
  };
  const std::string least =
      "of an unlikely token the answer is that with a probability of at least ";
  expect_shown(clamped(-std::log(1e-8)), with_an_unlikely_token(), "undeclared bound",
               least + "1.0e-08");
  // No exponential of f32, and none at all, is so small.
  expect_shown(clamped(100.0), with_an_unlikely_token(-200.0), "undeclared bound",
               least + "3.7e-44");
  expect_shown(clamped(1000.0), with_an_unlikely_token(-2000.0), "undeclared bound",
               least + "e^-1000");
}

TEST(ProbeFloor, SayNothingOfWhatTendsToALimitOtherwise) {
  const auto capped = of_terms([](double x) {
    const double share = std::tanh(x / 20.0);
    return Term{20.0 * share, 1.0 - share * share};
  });
  const std::string because = diagnosed(capped, with_an_unlikely_token()).because;
  EXPECT_EQ(because.find("unlikely token"), std::string::npos) << because;
}

}  // namespace
}  // namespace lossgate::properties
