// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/gae.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// The first output, that is the advantages.
struct Advantages : Sink<Tracked> {
  Advantages(const Case& c, const Arithmetic& arithmetic) {
    const Loss& loss = *find_loss("gae");
    evaluate(loss, Problem(loss.signature, c), arithmetic, *this);
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& x) override {
    if (output == 0) of[index] = x;
  }
  std::map<std::int64_t, Tracked> of;
};

/// One sequence without values, so that its rewards are what is added up.
Case rewarded(const std::vector<float>& rewards, double lambda) {
  const auto tokens = static_cast<std::int64_t>(rewards.size());
  Case c = zero_case(*find_signature("gae"), 1, tokens);
  c.spec.set("gamma", 1.0);
  c.spec.set("lambda", lambda);
  for (std::int64_t t = 0; t < tokens; ++t) {
    c.batch.at("mask").set(t, 1.0);
    c.batch.at("reward").set(t, rewards[static_cast<std::size_t>(t)]);
  }
  return c;
}

/// The largest share of what is allowed that the sum of q^k reward[t + k] takes, added up from the
/// first term on.
double worst_by_powers(const std::vector<float>& rewards, float q) {
  const Advantages expected(rewarded(rewards, q), plain_arithmetic(Dtype::f32, ""));
  double worst = 0.0;
  for (const auto& [t, a] : expected.of) {
    float sum = 0.0F, power = 1.0F;
    for (std::size_t u = static_cast<std::size_t>(t); u < rewards.size(); ++u, power *= q) {
      sum += power * rewards[u];
    }
    const double off = static_cast<double>(std::fabs(sum - a.v));
    if (off > 0.0) worst = std::max(worst, off / (kThreshold * a.err));
  }
  return worst;
}

TEST(Gae, MayBeASumOfPowers) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> rewards(129);
  double worst = 0.0;
  for (const float q : {0.03F, 0.28F, 0.6F, 0.95F, 1.0F}) {
    for (int i = 0; i < 300; ++i) {
      for (float& reward : rewards) reward = normal(engine);
      const double share = worst_by_powers(rewards, q);
      EXPECT_LE(share, 1.0) << q;
      worst = std::max(worst, share);
    }
  }
  EXPECT_GT(worst, 0.2);
}

TEST(Gae, MayBeWhatTheCriticIsToPredictLessWhatItDoes) {
  const struct {
    double lambda;
    float values[3], reward;
  } cases[] = {
      {0.97, {1.0303503274917603F, 1.0305482149124146F, 1.030518651008606F}, 1.0310797691345215F},
      {0.95, {1.0561964511871338F, 1.0556533336639404F, 1.0555636882781982F}, 1.0556087493896484F}};
  for (const auto& [lambda, values, reward] : cases) {
    Case c = rewarded({0.0F, 0.0F, reward}, lambda);
    for (std::int64_t t = 0; t < 3; ++t) c.batch.at("value").set(t, values[t]);
    const Advantages expected(c, plain_arithmetic(Dtype::f32, ""));
    const auto decay = static_cast<float>(lambda), rest = static_cast<float>(1.0 - lambda);
    float target = reward;
    for (std::int64_t t = 2; t >= 0; --t) {
      if (t < 2) target = rest * values[t + 1] + decay * target;
      const Tracked& a = expected.of.at(t);
      const double off =
          std::fabs(static_cast<double>(target - values[t]) - static_cast<double>(a.v));
      EXPECT_LE(off, kThreshold * a.err) << lambda << " " << t;
    }
  }
}

TEST(Gae, HasABoundWhereOneIsNoNormalNumber) {
  Arithmetic coarse = plain_arithmetic(Dtype::f64, "");
  coarse.eta = 0x1p-25;  // f16's, beside a much finer roundoff
  const std::vector<float> rewards = {1.0F, -2.0F, 0.5F};
  for (const float q : {0.9F, 0.99999F}) {
    const Advantages expected(rewarded(rewards, q), coarse);
    for (const auto& [t, a] : expected.of) {
      EXPECT_GE(a.err, coarse.eta) << t;
      EXPECT_LE(a.err, 100 * coarse.eta) << t;
    }
  }
}

TEST(Gae, LosesWhatAPowerBelowTheSmallestNumberMultiplies) {
  std::vector<float> rewards(40);
  rewards.back() = 3e38F;
  // q^39 = 1e-46 is 0 in f32, and 0.03 of the largest reward is left without it.
  EXPECT_LE(worst_by_powers(rewards, 0.0675F), 1.0);
}

TEST(Gae, MayMakeTheReturnOfTheAdvantageAsItIsStored) {
  const Loss& loss = *find_loss("gae");
  Case c = zero_case(loss.signature, 1, 1);
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("reward").set(0, -1.0);
  c.batch.at("value").set(0, -300.0);
  Arithmetic stored = plain_arithmetic(Dtype::f32, "");
  const double u = unit_roundoff(Dtype::bf16);
  const auto off = [&] {
    struct Return : Sink<Tracked> {
      void entry(std::size_t output, std::int64_t, const Tracked& x) override {
        if (output == 1) err = x.err;
      }
      double err = 0.0;
    } of;
    evaluate(loss, Problem(loss.signature, c), stored, of);
    return of.err;
  };
  EXPECT_LT(off(), u);
  stored.stage(Stage::per_token) = {u, min_subnormal(Dtype::bf16)};
  EXPECT_GE(off(), 0.99 * 299.0 * u) << "the return is -1, the advantage 299";
}

}  // namespace
}  // namespace lossgate::reference
