// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

TEST(ProbeExponents, BlamesTheLogarithmOfALogisticLoss) {
  const auto lost = answering("dpo", nullptr, [](const Case& c, LossResult& result) {
    for (std::int64_t s = 0; s < c.shape[Axis::sequences]; ++s) {
      const auto of = [&](std::string_view field) { return c.batch.at(field).at(s); };
      const double margin = of("chosen_log_prob") - of("rejected_log_prob") -
                            (of("ref_chosen_log_prob") - of("ref_rejected_log_prob"));
      if (c.spec.number("beta") * margin > -88.0) continue;
      for (const char* name : {"gradient.chosen_log_prob", "gradient.rejected_log_prob"}) {
        output(result, name).set(s, std::numeric_limits<double>::quiet_NaN());
      }
    }
  });
  Case c = ordinary_case("dpo", Dtype::f32);
  c.spec.set("beta", 1.0);
  c.batch.at("chosen_log_prob").set(0, -300.0);
  expect_shown(lost, c, "logarithm of an underflow", "right where no log-ratio is beyond exp");
}

/// The loss is no number where the exponential of one of two log-probs is 0.
impl::Implementation dividing_probabilities(const std::string& loss, const std::string& dividend,
                                            const std::string& divisor) {
  return answering(loss, nullptr, [=](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const auto is_lost = [&](const std::string& field) {
        return std::exp(c.batch.at(field).at(i)) == 0.0;
      };
      if (is_lost(dividend) || is_lost(divisor)) add_to_loss(result, std::nan(""));
    });
  });
}

TEST(ProbeExponents, SeesAQuotientOfProbabilitiesThatVanish) {
  const char* because =
      "right where tokens are likely, and no number where their probabilities are 0";
  Case tokens = ordinary_case("grpo");
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob"}) {
    Tensor& log_prob = tokens.batch.at(field);
    log_prob.set(0, log_prob.at(0) - 1000.0);
  }
  expect_shown(dividing_probabilities("grpo", "log_prob", "old_log_prob"), tokens,
               "logarithm of an underflow", because);
  // The other answer is no likelier where it is no farther than squares have room for.
  Case answers = ordinary_case("orpo");
  answers.batch.at("chosen_log_prob").set(0, -300.0);
  answers.batch.at("rejected_log_prob").set(0, -900.0);
  expect_shown(dividing_probabilities("orpo", "chosen_log_prob", "rejected_log_prob"), answers,
               "logarithm of an underflow", because);
}

TEST(ProbeExponents, TellsAProductOfWeightsFromANarrowFormat) {
  // A sequence's first token, or the product of them all.
  const auto overflowing = [](bool product) {
    return answering("gmpo", nullptr, [product](const Case& c, LossResult& result) {
      const std::int64_t tokens = c.shape[Axis::tokens];
      std::vector<double> exponents(static_cast<std::size_t>(c.shape[Axis::sequences]), 0.0);
      at_positions(c, true, [&](std::int64_t i) {
        double& exponent = exponents[static_cast<std::size_t>(i / tokens)];
        const double d = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
        exponent = product ? exponent + d : std::max(exponent, d);
      });
      for (const double exponent : exponents) {
        if (std::isinf(product ? std::exp(exponent) : std::exp(8.0 * exponent)))
          add_to_loss(result, std::nan(""));
      }
    });
  };
  Case c = ordinary_case("gmpo");
  for (const std::int64_t i : {0, 1}) {
    c.batch.at("advantage").set(i, -1.0);
    c.batch.at("old_log_prob").set(i, c.batch.at("log_prob").at(i) - 400.0);
  }
  expect_shown(overflowing(true), c, "overflow of a square or sum",
               "tokens of a sequence have no number together, and the farthest one alone is right");
  expect_shown(overflowing(false), c, "narrow arithmetic",
               "it overflows where the declared format has room for squares and exponentials");
}

TEST(ProbeExponents, TellsAnAdvantageThatOverflowsFromAnExponential) {
  // The exponent is bounded, and what the clip drops is infinite times 0 nevertheless.
  const auto unbounded = [](double bound) {
    return answering("grpo", nullptr, [bound](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t i) {
        const double d = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
        const double w = std::exp(std::min(d, bound)), a = c.batch.at("advantage").at(i);
        if (w * std::fabs(a) < std::numeric_limits<float>::max()) return;
        output(result, "gradient.log_prob").set(i, std::nan(""));
      });
    });
  };
  Case c = ordinary_case("grpo", Dtype::f32);
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 10.0);
  c.batch.at("advantage").set(0, 2e34);
  expect_shown(unbounded(20.0), c, "overflow of a square or sum",
               "right where no advantage is larger than 1, however far log-ratios are");
  EXPECT_NE(diagnosed(unbounded(HUGE_VAL), c).cause, "overflow of a square or sum");
}

TEST(ProbeExponents, TellsAnImpossibleTokenFromOneThatIsFar) {
  const auto lost = answering("cispo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor &log_prob = c.batch.at("log_prob"), &advantage = c.batch.at("advantage");
    at_positions(c, true, [&](std::int64_t i) {
      if (std::isnan(log_prob.at(i) * advantage.at(i))) add_to_loss(result, std::nan(""));
    });
  });
  Case c = ordinary_case("cispo", Dtype::f32);
  at_positions(c, true, [&](std::int64_t i) {
    if (i > 0) return;
    c.batch.at("log_prob").set(i, -HUGE_VAL);
    c.batch.at("advantage").set(i, 0.0);
  });
  expect_shown(lost, c, "zero times infinity",
               "right where an impossible token is as good as impossible");
}

/// No slope where a square of the log-ratio, or so much of it, is larger than what f32 has.
impl::Implementation without_slope(double part) {
  return answering("cispo", nullptr, [part](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const double d = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
      if (!(part * d * d > std::numeric_limits<float>::max())) return;
      output(result, "gradient.log_prob").set(i, std::nan(""));
    });
  });
}

TEST(ProbeExponents, CallWhatFitsInNoFormBehindABoundNoOverflowOfASquare) {
  Case c = ordinary_case("cispo", Dtype::f32);
  c.batch.at("log_prob").set(0, -3e19);
  expect_shown(without_slope(1.0), c, "overflow of a square or sum",
               "right where no difference is larger than any exponent");
  EXPECT_EQ(diagnosed(without_slope(0.5), c).cause, "non-finite slope behind a bound");
}

/// No number where a function of the log-ratio overflows f16, in which it is computed.
impl::Implementation overflowing_in_f16(double (*grown)(double log_ratio)) {
  auto implementation = answering("cispo", nullptr, [grown](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const double d = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
      if (grown(-d) > max_finite(Dtype::f16)) add_to_loss(result, std::nan(""));
    });
  });
  implementation.arithmetic = [](Dtype dtype) { return plain_arithmetic(dtype, ""); };
  return implementation;
}

TEST(ProbeExponents, TellsASquareThatOverflowsInF16FromAnExponential) {
  Case c = ordinary_case("cispo", Dtype::f16);
  c.batch.at("log_prob").set(0, -300.0);
  const auto squared = overflowing_in_f16([](double d) { return d * d; });
  expect_shown(squared, c, "overflow of a square or sum",
               "right where no difference is larger than any exponent");
  const auto exponential = overflowing_in_f16([](double d) { return std::exp(d); });
  EXPECT_EQ(diagnosed(exponential, c).cause, "clamp after exp");
}

/// Where the exp of a log-ratio overflows f32 the answer is another number.
impl::Implementation overflowing(double answer) {
  return answering("rollout_correction", nullptr, [answer](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const double ratio = c.batch.at("old_log_prob").at(i) - c.batch.at("sampler_log_prob").at(i);
      if (ratio > 88.8) output(result, "weight").set(i, answer);
    });
  });
}

/// The sampler found the first token all but impossible.
Case with_a_weight_that_overflows(const char* beyond) {
  Case c = ordinary_case("rollout_correction", Dtype::f32);
  c.spec.set("beyond", std::string(beyond));
  c.spec.set("log_ratio_clamp", None{});
  c.batch.at("sampler_log_prob").set(0, -200.0);
  return c;
}

TEST(ProbeExponents, TellsAFilterThatMultipliesFromOneThatSelects) {
  expect_shown(overflowing(std::nan("")), with_a_weight_that_overflows("drop"),
               "zero times infinity",
               "right where nothing is far, and no number where the formula is 0");
}

TEST(ProbeExponents, TellsAZeroThatMeetsASquareFromTheSquareAlone) {
  const auto product = answering("cispo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const double d = c.batch.at("log_prob").at(i) - c.batch.at("old_log_prob").at(i);
      if (d * d > max_finite(Dtype::f32)) output(result, "per_token").set(i, std::nan(""));
    });
  });
  Case c = ordinary_case("cispo", Dtype::f32);
  c.batch.at("log_prob").set(0, -3e19);
  EXPECT_EQ(diagnosed(product, c).cause, "overflow of a square or sum");
  c.batch.at("advantage").set(0, 0.0);
  expect_shown(product, c, "zero times infinity",
               "right where nothing is far, and no number where the formula is 0");
}

TEST(ProbeExponents, TellsAnOverflowThatBecomesANumber) {
  expect_shown(overflowing(0.0), with_a_weight_that_overflows("truncate"), "laundering",
               "right where every log-ratio's exp fits, and a number where one overflows");
}

}  // namespace
}  // namespace lossgate::properties
