// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/gmpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// One sequence of f32 log-probs and advantages, whose old log-probs are 0.
Case sequence_of(const std::vector<double>& log_probs, const std::vector<double>& advantages) {
  Case c = zero_case(*find_signature("gmpo"), 1, static_cast<std::int64_t>(log_probs.size()));
  c.spec.reduction = Reduction::sum;
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    c.batch.at("mask").set(at, 1.0);
    c.batch.at("log_prob").set(at, log_probs[i]);
    c.batch.at("advantage").set(at, advantages[i]);
  }
  return c;
}

/// The term of the sequence, and the gradients of its tokens.
struct Found : Sink<Tracked> {
  explicit Found(const Case& c, const Arithmetic& arithmetic = plain_arithmetic(Dtype::f32, "")) {
    const Loss& loss = *find_loss("gmpo");
    const Problem problem(loss.signature, c);
    evaluate(loss, problem, arithmetic, *this);
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& x) override {
    if (output == 1) term = x;
    if (output == 2) gradient[index] = x;
  }
  Tracked term;
  std::map<std::int64_t, Tracked> gradient;
};

TEST(Gmpo, FitsWhereTheProductOfItsWeightsDoesNot) {
  const Found found(sequence_of({60.0, 50.0}, {-1.0, -1.0}));
  EXPECT_NEAR(static_cast<double>(found.term.v), std::exp(55.0), 1e-6 * std::exp(55.0));
  EXPECT_LE(found.term.peak, max_finite(Dtype::f32));
}

TEST(Gmpo, IsSilentWithoutAnAdvantageHoweverLargeItsWeightWouldBe) {
  const Found found(sequence_of({200.0, 100.0}, {0.0, -0.0}));
  EXPECT_TRUE(found.term.is_exact_zero());
  for (const auto& [at, gradient] : found.gradient) EXPECT_TRUE(gradient.is_exact_zero()) << at;
}

TEST(Gmpo, MayHaveNoNumberWhereATokenWithoutAnAdvantageHasNone) {
  Case c = sequence_of({-HUGE_VAL, 0.0}, {0.0, 0.0});
  c.batch.at("old_log_prob").set(0, -HUGE_VAL);
  EXPECT_EQ(Found(c).term.v, 0.0L);
  EXPECT_TRUE(tracking::undefined(Found(c).term));
}

TEST(Gmpo, LeavesTheSlopeOpenWhereRoundingDecidesWhichSideOfABoundItIs) {
  const double bound = 0.3F;
  Case c = sequence_of({bound}, {1.0});
  c.batch.at("old_log_prob").set(0, -1e-9);
  c.spec.set("clip_high", bound);
  const Tracked at_bound = Found(c).gradient.at(0);
  EXPECT_GT(at_bound.half, 0.4) << "all of it, or nothing";
  c.batch.at("log_prob").set(0, 0.31);
  EXPECT_TRUE(Found(c).gradient.at(0).is_exact_zero());
  c.batch.at("log_prob").set(0, 0.29);
  EXPECT_EQ(Found(c).gradient.at(0).half, 0.0);
}

TEST(Gmpo, HasARoundedBoundWhereItsLogRatiosAreStored) {
  Arithmetic stored = plain_arithmetic(Dtype::f32, "");
  stored.stage(Stage::log_prob) = {.roundoff = unit_roundoff(Dtype::bf16),
                                   .eta = min_subnormal(Dtype::bf16),
                                   .largest = max_finite(Dtype::bf16)};
  Case c = sequence_of({3.0}, {1.0});
  c.spec.set("clip_high", 1.1);
  const double rounded = -std::exp(round_to(Dtype::bf16, 1.1));
  const auto off = [&](const Tracked& x) { return std::fabs(rounded - static_cast<double>(x.v)); };
  EXPECT_LE(off(Found(c, stored).term), kThreshold * Found(c, stored).term.err);
  EXPECT_GT(off(Found(c).term), kThreshold * Found(c).term.err) << "nothing is stored";
}

TEST(Gmpo, DividesByTheLengthInAnyOrder) {
  // A weight of exp(-100), which is subnormal in f32 over 64 tokens, and 2^14 above it.
  Case c = sequence_of(std::vector<double>(64, -100.0), std::vector<double>(64, 1.0));
  c.upstream = 16384.0;
  const Tracked gradient = Found(c).gradient.at(0);
  EXPECT_GE(gradient.err, 16384.0 * min_subnormal(Dtype::f32));
}

}  // namespace
}  // namespace lossgate::reference
