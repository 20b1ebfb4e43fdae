// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

constexpr double kLimit = 30.0;

/// A KL penalty whose log-ratios a limit holds and has no part in their slopes. Where it holds them
/// the value may have lost digits, as x + (clamp(x) - x) has.
impl::Implementation straight_through(double lost = 0.0) {
  return answering("kl_penalty", nullptr, [lost](const Case& c, LossResult& result) {
    if (c.spec.is_none("kl_input_clamp")) return;
    at_positions(c, true, [&](std::int64_t i) {
      const double x = c.batch.at("ref_log_prob").at(i) - c.batch.at("log_prob").at(i);
      if (std::fabs(x) <= c.spec.number("kl_input_clamp")) return;
      output(result, "gradient.log_prob").set(i, -std::copysign(0.25, x));
      Tensor& values = output(result, "per_token");
      values.set(i, values.at(i) * (1.0 + lost));
    });
  });
}

/// The reference finds the first token far less likely.
Case beyond_the_limit() {
  Case c = ordinary_case("kl_penalty");
  c.spec.set("kl_input_clamp", kLimit);
  c.spec.set("kl_output_clamp", None{});
  c.batch.at("ref_log_prob").set(0, c.batch.at("log_prob").at(0) - 50.0);
  return c;
}

TEST(ProbeThroughLimit, SeesASlopeWhereALimitHoldsTheValue) {
  for (const double lost : {0.0, 1e-9}) {
    expect_shown(straight_through(lost), beyond_the_limit(), "gradient through a clamp",
                 "beyond kl_input_clamp a gradient flows, and without it all is right");
  }
}

TEST(ProbeThroughLimit, SaysNothingOfValuesThatAreOffByMore) {
  EXPECT_FALSE(speaks(probe_through_limit, straight_through(0.5), beyond_the_limit()));
}

TEST(ProbeThroughLimit, BlamesNoLimitForASlopeThatFlowsWithoutIt) {
  const auto far = answering("kl_penalty", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t i) {
      const double x = c.batch.at("ref_log_prob").at(i) - c.batch.at("log_prob").at(i);
      if (std::fabs(x) > kLimit) output(result, "gradient.log_prob").set(i, 0.25);
    });
  });
  EXPECT_FALSE(speaks(probe_through_limit, far, beyond_the_limit()));
}

}  // namespace
}  // namespace lossgate::properties
