// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// A number, and how fast it grows with what it is made of.
struct Term {
  double value, slope;
};

/// The mean over tokens in f32 alone.
impl::Implementation in_one_format(impl::Implementation fake) {
  fake.unsupported = [](const Case& c) -> decltype(fake.unsupported(c)) {
    const bool mean = c.spec.reduction == Reduction::token_mean;
    if (mean && c.batch.at("logits").dtype == Dtype::f32) return std::nullopt;
    return "the mean over tokens in f32 alone";
  };
  return fake;
}

/// Cross-entropy of the surprises that are made of the right ones, -log p.
impl::Implementation of_terms(const std::function<Term(double)>& term) {
  return in_one_format(
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
      }));
}

/// An entropy bonus of what is made of each probability in the place of p log p.
impl::Implementation of_probabilities(const std::function<Term(double)>& term) {
  return in_one_format(
      answering("entropy_bonus", nullptr, [term](const Case& c, LossResult& result) {
        const std::int64_t vocab = c.shape[Axis::vocab];
        const double coefficient = c.spec.number("coefficient");
        const std::vector<bool> valid = valid_of(c);
        const auto tokens = static_cast<double>(std::ranges::count(valid, true));
        double loss = 0.0;
        at_positions(c, true, [&](std::int64_t position) {
          std::vector<double> p;
          double largest = -HUGE_VAL, sum = 0.0, value = 0.0, mean = 0.0;
          for (std::int64_t v = 0; v < vocab; ++v) {
            p.push_back(c.batch.at("logits").at(position * vocab + v));
            largest = std::max(largest, p.back());
          }
          for (double& each : p) sum += each = std::exp(each - largest);
          for (double& each : p) {
            each /= sum;
            value += coefficient * term(each).value;
            mean += each * term(each).slope;
          }
          output(result, "per_token").set(position, value);
          loss += value / tokens;
          for (std::int64_t v = 0; v < vocab; ++v) {
            const double own = p[static_cast<std::size_t>(v)];
            const double slope = coefficient * own * (term(own).slope - mean);
            output(result, "gradient.logits")
                .set(position * vocab + v, c.upstream * slope / tokens);
          }
        });
        output(result, "loss").set(0, loss);
      }));
}

/// One token is as good as impossible.
Case with_an_unlikely_token(double logit = -40.0) {
  Case c = ordinary_case("cross_entropy", Dtype::f32);
  c.spec.reduction = Reduction::token_mean;
  c.batch.at("logits").set(c.batch.at("label").integer_at(0), logit);
  return c;
}

Case with_an_unlikely_alternative() {
  Case c = ordinary_case("entropy_bonus", Dtype::f32);
  c.spec.reduction = Reduction::token_mean;
  c.batch.at("logits").set(0, -20.0);
  return c;
}

TEST(ProbeFloor, NameAConstantBesideAProbability) {
  const auto guarded = of_terms([](double x) {
    const double p = std::exp(-x);
    return Term{-std::log(p + 1e-8), p / (p + 1e-8)};
  });
  expect_shown(guarded, with_an_unlikely_token(), "epsilon in a logarithm",
               "of an unlikely token the answer is that with 1.0e-08 added to its probability");
  EXPECT_TRUE(speaks(probe_floor, through_layer(guarded), ordinary_case("linear_cross_entropy")));
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

TEST(ProbeFloor, NameAConstantInAnEntropy) {
  const char* beside =
      "of an unlikely token the answer is that with 1.0e-08 added to its probability";
  const auto in_logarithm = of_probabilities([](double p) {
    return Term{p * std::log(p + 1e-8), std::log(p + 1e-8) + p / (p + 1e-8)};
  });
  const auto throughout = of_probabilities([](double p) {
    const double sum = p + 1e-8;
    return Term{sum * std::log(sum), std::log(sum) + 1.0};
  });
  const auto floored = of_probabilities([](double p) {
    const double least = std::max(p, 1e-8);
    return Term{p * std::log(least), std::log(least) + (p > 1e-8 ? 1.0 : 0.0)};
  });
  const Case c = with_an_unlikely_alternative();
  expect_shown(in_logarithm, c, "epsilon in a logarithm", beside);
  expect_shown(throughout, c, "epsilon in a logarithm", beside);
  expect_shown(floored, c, "undeclared bound",
               "of an unlikely token the answer is that with a probability of at least 1.0e-08");
}

TEST(ProbeFloor, SayNothingOfAnEntropyWhoseSlopeIsOffOtherwise) {
  const auto halved = answering("entropy_bonus", nullptr, [](const Case& c, auto& result) {
    Tensor& gradient = output(result, "gradient.logits");
    for (std::int64_t i = 0; i < gradient.size(); i += c.shape[Axis::vocab]) {
      gradient.set(i, 0.5 * gradient.at(i));
    }
  });
  EXPECT_FALSE(speaks(probe_floor, halved, ordinary_case("entropy_bonus")));
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
