// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
