// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// A loss of logits that is no number where some logit is farther from 0 than that.
impl::Implementation lost_beyond(double largest) {
  return answering("cross_entropy", nullptr, [largest](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t position) {
      for (std::int64_t v = 0; v < vocab; ++v) {
        if (std::fabs(logits.at(position * vocab + v)) > largest) {
          add_to_loss(result, std::nan(""));
        }
      }
    });
  });
}

/// Each row's logits as far above 0.
Case lifted(double by) {
  Case c = ordinary_case("cross_entropy", Dtype::f32);
  change_each(c.batch.at("logits"), [&](double x) { return x + by; });
  return c;
}

TEST(ProbeLogits, BlamesAnExponentialThatIsTakenOfThem) {
  expect_shown(lost_beyond(88.0), lifted(100.0), "exp of an unshifted logit",
               "right where the largest logit of each row is subtracted before the call");
}

TEST(ProbeLogits, BlamesNoExponentialWhereWhatIsBeyondItIsRight) {
  expect_shown(lost_beyond(1e19), lifted(1e20), "overflow of a square or sum",
               "right where the largest logits are just beyond any exponent");
}

/// Cross-entropy that is infinite where the sum of some exponentials is so: of a row's logits, less
/// the label's or the largest one.
impl::Implementation lost_to(bool (*lost)(const std::vector<double>& row, double own)) {
  return answering("cross_entropy", nullptr, [lost](const Case& c, LossResult& result) {
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t position) {
      std::vector<double> row;
      for (std::int64_t v = 0; v < vocab; ++v) {
        row.push_back(c.batch.at("logits").at(position * vocab + v));
      }
      const auto label = static_cast<std::size_t>(c.batch.at("label").integer_at(position));
      if (lost(row, row[label])) add_to_loss(result, HUGE_VAL);
    });
  });
}

Case with_first_label(double logit) {
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(c.batch.at("label").integer_at(0), logit);
  return c;
}

TEST(ProbeLogits, TellAnExponentialThatOverflowsFromOneThatUnderflows) {
  const auto of_label = lost_to([](const std::vector<double>& row, double own) {
    double sum = 0.0;
    for (const double x : row) sum += std::exp(x - own);
    return std::isinf(sum);
  });
  const auto of_largest = lost_to([](const std::vector<double>& row, double own) {
    return std::exp(own - *std::ranges::max_element(row)) == 0.0;
  });
  const Case c = with_first_label(-800.0);
  expect_shown(of_label, c, "exp of an unshifted logit",
               "of an ever less likely token the answer is lost where exp overflows");
  expect_shown(of_largest, c, "logarithm of an underflow", "right where no probability underflows");
}

TEST(ProbeLogits, BlamesTheMaximumOfTheFirstClassesWhereTheLikeliestIsNoneOfThem) {
  const auto of_first_two = lost_to([](const std::vector<double>& row, double) {
    double sum = 0.0;
    for (const double x : row) sum += std::exp(x - std::max(row[0], row[1]));
    return std::isinf(sum);
  });
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(3, 800.0);
  expect_shown(of_first_two, c, "exp of an unshifted logit",
               "right where the likeliest token comes first in the vocabulary");
}

TEST(ProbeLogits, CallNoSkippedTokenThatIsCertainAnUnderflow) {
  const auto skips = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t p) {
      const double own = logits.at(p * vocab + c.batch.at("label").integer_at(p));
      double sum = 0.0;
      for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(logits.at(p * vocab + v) - own);
      if (sum > 1.000001) return;
      for (std::int64_t v = 0; v < vocab; ++v) {
        output(result, "gradient.logits").set(p * vocab + v, 0.0);
      }
    });
  });
  const Case c = with_first_label(20.0);
  ASSERT_NE(diagnosed(skips, c).cause, "held");
  EXPECT_FALSE(speaks(probe_logits, skips, c));
}

TEST(ProbeLogits, TellALogitThatIsDroppedFromOneThatUnderflows) {
  const char* because =
      "wrong of an unlikely token whose probability is no small number of its format";
  const auto dropped = lost_to([](const std::vector<double>& row, double own) {
    return own < *std::ranges::max_element(row) - 50.0;
  });
  expect_shown(dropped, with_first_label(-60.0), "undeclared bound", because);
}

/// Off where the largest logit of a row is below -90, and no number where it is below `least`.
impl::Implementation off_where_low(double least) {
  return answering("cross_entropy", nullptr, [least](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t position) {
      double largest = -HUGE_VAL;
      for (std::int64_t v = 0; v < vocab; ++v) {
        largest = std::max(largest, logits.at(position * vocab + v));
      }
      if (largest < -90.0) add_to_loss(result, largest < least ? HUGE_VAL : 0.25);
    });
  });
}

TEST(ProbeLogits, BlameAnExponentialForAWrongNumberThatIsNoneFartherOff) {
  const Case c = lifted(-100.0);
  expect_shown(off_where_low(-1e3), c, "exp of an unshifted logit",
               "right where the largest logit of each row is subtracted before the call");
  EXPECT_NE(diagnosed(off_where_low(-HUGE_VAL), c).cause, "exp of an unshifted logit");
}

TEST(ProbeLogits, CallNoRoundingOfFarLogitsAnUnderflow) {
  // As log1p((expm1 of a difference of large numbers) / 2) is, whose digits are those of the
  // logits.
  const auto rounds = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t position) {
      for (std::int64_t v = 0; v < vocab; ++v) {
        if (logits.at(position * vocab + v) < -500.0) add_to_loss(result, 0.25);
      }
    });
  });
  const Case c = with_first_label(-998.0);
  ASSERT_NE(diagnosed(rounds, c).cause, "held");
  EXPECT_FALSE(speaks(probe_logits, rounds, c));
}

TEST(ProbeLogits, CallNoNumberARepairedNaN) {
  const auto bounded = answering("cross_entropy", [](Case& c) {
    change_each(c.batch.at("logits"), [](double x) { return std::max(x, -1e4); });
  });
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(c.batch.at("label").integer_at(0), -HUGE_VAL);
  EXPECT_THAT(diagnosed(bounded, c).cause,
              testing::Not(testing::AnyOf("held", "value repaired, gradient not")));
}

}  // namespace
}  // namespace lossgate::properties
