// SPDX-License-Identifier: Apache-2.0
// Rules A and B of README.md, as far as GRPO can show them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "properties/agreement.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

using reference::Real;
using reference::Tracked;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kFields[] = {"log_prob", "old_log_prob", "ref_log_prob", "advantage"};

Arithmetic single() { return plain_arithmetic(Dtype::f32, "expm1(x) - x, closed"); }

Arithmetic exact() {
  Arithmetic arithmetic = single();
  arithmetic.roundoff = arithmetic.eta = arithmetic.sum.roundoff = 0.0;
  return arithmetic;
}

Tracked expected(const Case& c, std::string_view output, std::int64_t index,
                 const Arithmetic& arithmetic = single()) {
  CaseStudy study(grpo(), c);
  Tracked found;
  study.for_each_expected(arithmetic, false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
    if (study.outputs()[o].name == output && i == index) found = x;
  });
  return found;
}

Case on_policy_case(std::int64_t sequences, std::int64_t tokens) {
  Case c = grpo_case(sequences, tokens);
  c.batch.at("old_log_prob") = c.batch.at("ref_log_prob") = c.batch.at("log_prob");
  return c;
}

/// One token without KL; the log-ratio is as given and unbounded.
Case one_token(double log_ratio, double advantage) {
  Case c = grpo_case(1, 1);
  c.spec.set("kl_penalty", 0.0);
  c.spec.set("log_ratio_clamp", None{});
  put_log_ratio(c, 0, 0, log_ratio);
  put(c, "advantage", 0, 0, advantage);
  return c;
}

TEST(RuleA1, StoredBitsAreWidenedExactly) {
  Case c = on_policy_case(1, 1);
  put(c, "advantage", 0, 0, 0.1);
  EXPECT_EQ(expected(c, "loss", 0).v, -static_cast<Real>(0.1f));
  put(c, "advantage", 0, 0, min_subnormal(Dtype::f32));
  EXPECT_EQ(expected(c, "loss", 0).v, -static_cast<Real>(min_subnormal(Dtype::f32)));
}

TEST(RuleA2, WhatIsMaskedIsNotRead) {
  Case plain = grpo_case(2, 3), poisoned = plain;
  mask_out(plain, 0, 1), mask_out(poisoned, 0, 1);
  for (const char* field : kFields) put(poisoned, field, 0, 1, kNan);
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(expected(plain, "gradient.log_prob", i).v,
              expected(poisoned, "gradient.log_prob", i).v);
  }
  EXPECT_EQ(expected(plain, "loss", 0).v, expected(poisoned, "loss", 0).v);
  EXPECT_TRUE(expected(poisoned, "gradient.log_prob", 1).is_exact_zero());
}

TEST(RuleA4, ClampPassesTheGradientOnItsClosedInterval) {
  for (double log_ratio : {20.0, -20.0, 20.00001, -20.00001}) {
    Case c = one_token(log_ratio, -1.0);
    c.spec.set("log_ratio_clamp", 20.0);
    c.spec.set("clip_low", 0.9);
    put(c, "advantage", 0, 0, log_ratio < 0 ? 1.0 : -1.0);
    const bool inside = std::fabs(log_ratio) <= 20.0;
    EXPECT_EQ(expected(c, "gradient.log_prob", 0, exact()).v != 0.0L, inside) << log_ratio;
  }
}

TEST(RuleA5, CountsAreOfTheWholeBatchAndOfLiveSequences) {
  Case c = on_policy_case(3, 2);
  for (std::int64_t i = 0; i < 6; ++i) c.batch.at("advantage").set(i, -1.0);
  mask_out(c, 0, 0), mask_out(c, 0, 1), mask_out(c, 1, 1);
  c.split = {.world = 1, .parts = {{0, {0, 1}}, {0, {2}}}};
  for (Reduction reduction : {Reduction::token_mean, Reduction::sequence_mean}) {
    c.spec.reduction = reduction;
    EXPECT_NEAR(static_cast<double>(expected(c, "loss", 0).v), 1.0, 1e-15);
  }
}

TEST(RuleA6, SelectionComesBeforeTheOverflowOfTheReference) {
  for (double log_ratio : {89.0, 710.0, 12000.0}) {  // overflows f32, double and Real
    const Tracked clipped = expected(one_token(log_ratio, 1.0), "loss", 0);
    EXPECT_NEAR(static_cast<double>(clipped.v), -1.2, 1e-15);
    EXPECT_LT(clipped.peak, 2.0) << log_ratio;
    EXPECT_LT(clipped.err, 1e-6) << log_ratio;
  }
  Case c = grpo_case(1, 2);
  put(c, "advantage", 0, 0, kInfinity), put(c, "advantage", 0, 1, -kInfinity);
  EXPECT_TRUE(std::isnan(expected(c, "loss", 0).v));
  EXPECT_FALSE(check("reference_agreement", fake_grpo(), c).violation);
}

TEST(RuleA7, LargeCasesAreStreamedWithTheSameVerdict) {
  Case c = grpo_case(200, 180);
  c.spec.reduction = Reduction::sum;
  EXPECT_EQ(check("reference_agreement", fake_grpo(), c).verdict, Verdict::held);
  EXPECT_EQ(check("reference_agreement", fake_grpo(Flaw::one_slope_biased, 1e-3), c).verdict,
            Verdict::violated);
}

TEST(RuleB1, AnUntrueDeclarationIsFound) {
  impl::Implementation boastful = fake_grpo();
  boastful.arithmetic = [](Dtype) { return plain_arithmetic(Dtype::f64, "expm1(x) - x, closed"); };
  EXPECT_EQ(check("reference_agreement", boastful, grpo_case(2, 4)).verdict, Verdict::violated);
}

TEST(RuleB1, TheOrderOfASumDecidesItsBound) {
  // 1 and 4,095 numbers that vanish beside it one by one.
  Case c = on_policy_case(1, 4096);
  c.spec.reduction = Reduction::sum;
  for (std::int64_t t = 0; t < 4096; ++t) put(c, "advantage", 0, t, t == 0 ? -1.0 : -0x1p-25);
  EXPECT_EQ(check("reference_agreement", fake_grpo(), c).verdict, Verdict::held);
  impl::Implementation pairwise = fake_grpo();
  pairwise.arithmetic = [](Dtype) { return single(); };
  const Outcome outcome = check("reference_agreement", pairwise, c);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->place.output, "loss");
}

TEST(RuleB2, AnUnderflowedWeightKeepsTheSmallestNumberAsItsError) {
  const Case c = one_token(-104.0, -1.0);
  const Tracked slope = expected(one_token(-104.0, 1.0), "gradient.log_prob", 0);
  EXPECT_GT(slope.err, 0.0);
  EXPECT_EQ(check("reference_agreement", fake_grpo(), c).verdict, Verdict::held);
}

TEST(RuleB1, AnIdentityMayLoseASubnormalInputWhereTheArithmeticFlushesIt) {
  Case c = on_policy_case(1, 1);
  c.spec.set("kl_penalty", 0.0);
  put(c, "advantage", 0, 0, 7e-44);
  impl::Implementation flushes = fake_grpo();
  flushes.evaluate = [plain = flushes.evaluate](const LossSignature& signature, const Case& given) {
    Case read = given;
    put(read, "advantage", 0, 0, 0.0);
    return plain(signature, read);
  };
  flushes.arithmetic = [](Dtype) { return single(); };
  EXPECT_EQ(check("on_policy_identity", flushes, c).verdict, Verdict::violated);
  flushes.arithmetic = [](Dtype) { return with_subnormals_flushed(single()); };
  EXPECT_EQ(check("on_policy_identity", flushes, c).verdict, Verdict::vacuous);
}

TEST(RuleB3, AnIdentityIsRoundedByTheFormatsThatItIsDeclaredToPass) {
  Case c = on_policy_case(1, 1);
  c.spec.set("kl_penalty", 0.0);
  put(c, "advantage", 0, 0, 0.1F);
  impl::Implementation narrow = fake_grpo();
  narrow.evaluate = [plain = narrow.evaluate](const LossSignature& signature, const Case& given) {
    LossResult result = plain(signature, given);
    for (Output& output : result.outputs) {
      if (output.name != "per_token") continue;
      output.tensor.set(0, round_to(Dtype::bf16, output.tensor.at(0)));
    }
    return result;
  };
  Arithmetic declared = single();
  narrow.arithmetic = [&](Dtype) { return declared; };
  EXPECT_EQ(check("on_policy_identity", narrow, c).verdict, Verdict::violated);
  declared.stage(Stage::per_token) = {.roundoff = unit_roundoff(Dtype::bf16),
                                      .eta = min_subnormal(Dtype::bf16)};
  EXPECT_EQ(check("on_policy_identity", narrow, c).verdict, Verdict::held);
  EXPECT_EQ(
      check("on_policy_identity", fake_grpo(Flaw::kl_biased, 1e-3), on_policy_case(1, 1)).verdict,
      Verdict::violated);
  declared = plain_arithmetic(Dtype::bf16, "");
  EXPECT_EQ(check("on_policy_identity", narrow, c).verdict, Verdict::held);
}

TEST(RuleB2, ASelectedZeroAnnihilatesAndAFactorOfOneRoundsNothing) {
  EXPECT_TRUE(expected(one_token(200.0, 0.0), "gradient.log_prob", 0).is_exact_zero());
  const Case c = on_policy_case(1, 1);  // weight 1 / 1, importance 1
  EXPECT_EQ(expected(c, "per_token", 0, exact()).v, -static_cast<Real>(get(c, "advantage", 0, 0)));
  Case two = on_policy_case(1, 2);
  two.spec.set("kl_penalty", 0.0);
  mask_out(two, 0, 1);
  EXPECT_LE(expected(two, "loss", 0).err, 4 * 0x1p-24);  // adding a zero costs nothing
}

TEST(RuleB4, AMeanOfMeansIsCaughtWhereTheTrueMeanIsZero) {
  Case c = on_policy_case(4, 9);
  for (std::int64_t s = 0; s < 4; ++s) {
    for (std::int64_t t = 0; t < 9; ++t) {
      put(c, "advantage", s, t, s == 0 ? 1.0 : -3.0);
      if (s > 0 && t > 0) mask_out(c, s, t);
    }
  }
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}, {0, {2}}, {0, {3}}}};
  EXPECT_NEAR(static_cast<double>(expected(c, "loss", 0).v), 0.0, 1e-18);
  EXPECT_FALSE(check("split_invariance", fake_grpo(), c).violation);
  Case loss_only = c;
  loss_only.upstream = 0.0;  // nothing but the loss can tell
  const Outcome outcome = check("split_invariance", fake_grpo(Flaw::mean_of_means), loss_only);
  ASSERT_EQ(outcome.verdict, Verdict::violated);
  EXPECT_EQ(outcome.violation->place.output, "loss");
  EXPECT_FLOAT_EQ(static_cast<float>(outcome.violation->actual), 2.0f);
}

TEST(RuleB5, AReferenceThatIsNotMuchBetterIsNoReference) {
  impl::Implementation better = fake_grpo();
  better.arithmetic = [](Dtype) {
    Arithmetic arithmetic = plain_arithmetic(Dtype::f64, "expm1(x) - x, closed");
    arithmetic.roundoff = arithmetic.sum.roundoff = arithmetic.matmul.roundoff = 0x1p-62;
    return arithmetic;
  };
  const Outcome outcome = check("reference_agreement", better, grpo_case(1, 2, Dtype::f64));
  EXPECT_EQ(outcome.verdict, Verdict::skipped);
  EXPECT_EQ(outcome.reason, "reference uncertain");
}

TEST(RuleB5, EveryRoundoffOfTheDeclarationCounts) {
  const Arithmetic declared = plain_arithmetic(Dtype::f64, "");
  EXPECT_EQ(reference::unsuitable_for(declared), "");
  for (const int which : {0, 1, 2}) {
    Arithmetic better = declared;
    (which == 0   ? better.roundoff
     : which == 1 ? better.sum.roundoff
                  : better.matmul.roundoff) = 0x1p-62;
    EXPECT_EQ(reference::unsuitable_for(better), "reference uncertain") << which;
  }
}

TEST(RuleB5, AHundredOfTheReferencesOwnRoundoffsAreAsked) {
  Arithmetic better = plain_arithmetic(Dtype::f64, "");
  better.roundoff = 70.0 * reference::real_arithmetic().roundoff;
  EXPECT_EQ(reference::unsuitable_for(better), "reference uncertain");
  better.roundoff = 130.0 * reference::real_arithmetic().roundoff;
  EXPECT_EQ(reference::unsuitable_for(better), "");
}

TEST(RuleB5, SoDoesEveryFunctionOfTheLibrary) {
  using M = MathLibrary;
  for (double M::*f : {&M::exp, &M::log, &M::log1p, &M::expm1, &M::tanh, &M::sigmoid, &M::sqrt}) {
    Arithmetic better = plain_arithmetic(Dtype::f64, "");
    better.math.*f *= 0x1p-9;
    EXPECT_EQ(reference::unsuitable_for(better), "reference uncertain");
    better.math.*f *= 0x1p8;
    EXPECT_EQ(reference::unsuitable_for(better), "");
  }
}

TEST(RuleB6, EitherSlopeIsRightAtTheClipEdgeAndOneOnlyBesideIt) {
  const double edge = static_cast<float>(std::log(1.2));
  EXPECT_GT(expected(one_token(edge, 1.0), "gradient.log_prob", 0).half, 0.5);
  for (double away : {edge - 1e-5, edge + 1e-5}) {
    EXPECT_EQ(expected(one_token(away, 1.0), "gradient.log_prob", 0).half, 0.0);
  }
  for (int ulps = -6; ulps <= 6; ++ulps) {
    const Case c = one_token(edge + ulps * 0x1p-27, 1.0);
    EXPECT_FALSE(check("reference_agreement", fake_grpo(), c).violation) << ulps;
  }
  EXPECT_EQ(
      check("reference_agreement", fake_grpo(Flaw::slope_biased, 0.5), one_token(edge - 1e-5, 1.0))
          .verdict,
      Verdict::violated);
}

TEST(RuleB6, BesideTheClipThatDecidesNothingTheSlopeIsWhatATieGivesIt) {
  // A > 0 and w at 1 - clip_low: both arguments of min may round to one number.
  const Tracked low =
      expected(one_token(static_cast<float>(std::log(0.8)), 1.0), "gradient.log_prob", 0);
  EXPECT_NEAR(static_cast<double>(low.v), -0.4, 1e-6);
  EXPECT_NEAR(low.half, 0.4, 1e-6);
}

TEST(RuleB6, WhereBothArgumentsOfMinOverflowTheyAreEqual) {
  const auto slope = [](double log_ratio, double advantage) {
    return expected(one_token(log_ratio, advantage), "gradient.log_prob", 0);
  };
  const double w = std::exp(1.0), both = 1.01 * max_finite(Dtype::f32) / 1.2;
  EXPECT_GE(slope(1.0, both).half, 0.49 * both * w) << "min may hand on all or nothing";
  EXPECT_GE(slope(1.0, -both).half, 0.49 * both * w);
  EXPECT_EQ(slope(1.0, 0.98 * both).half, 0.0) << "one of them fits";
  EXPECT_EQ(slope(0.125, 3.4e38).half, 0.0) << "within the clip both hand on all";
}

TEST(RuleB7, AnUndeclaredFormGetsTheWidestBound) {
  Case c = on_policy_case(1, 1);
  put(c, "ref_log_prob", 0, 0, get(c, "log_prob", 0, 0) + 1e-3);
  const auto bound = [&](const std::string& form) {
    return expected(c, "per_token", 0, plain_arithmetic(Dtype::f32, form)).err;
  };
  const double widest = bound("");
  for (const std::string& form : grpo().signature.forms) EXPECT_LE(bound(form), widest) << form;
  EXPECT_LT(bound(grpo().signature.forms.front()), widest);
}

/// On policy, a weight for each of two sequences, of which the second has one token.
Case sequences_on_policy() {
  Case c = grpo_case(2, 4);
  c.spec.set("level", "sequence");
  c.spec.set("kl_penalty", 0.0);
  for (std::int64_t i = 0; i < 8; ++i) {
    put(c, "log_prob", i / 4, i % 4, -2.7);
    put(c, "advantage", i / 4, i % 4, 1.0);
  }
  c.batch.at("old_log_prob") = c.batch.at("ref_log_prob") = c.batch.at("log_prob");
  for (std::int64_t t = 1; t < 4; ++t) mask_out(c, 1, t);
  return c;
}

/// Its weight of one sequence is off by so much of 1.
impl::Implementation off_policy(std::int64_t sequence, double off, const std::string& form) {
  impl::Implementation fake = fake_grpo();
  fake.arithmetic = [form](Dtype) { return plain_arithmetic(Dtype::f32, form); };
  fake.evaluate = [plain = fake.evaluate, sequence, off](const LossSignature& signature,
                                                         const Case& given) {
    LossResult result = plain(signature, given);
    for (Output& output : result.outputs) {
      if (output.name != "per_token") continue;
      for (std::int64_t i = 4 * sequence; i < 4 * sequence + 4; ++i) {
        output.tensor.set(i, output.tensor.at(i) * (1.0 + off));
      }
    }
    return result;
  };
  return fake;
}

TEST(RuleB7, AnIdentityOfMeansThatAreAddedUpApartIsOneWithinTheirRoundings) {
  const Case c = sequences_on_policy();
  constexpr double kOrder = 0x1p-21;  // a few units of what the sums of eleven round
  const auto verdict = [&](std::int64_t sequence, double off, const std::string& form = "") {
    return check("on_policy_identity", off_policy(sequence, off, form), c).verdict;
  };
  EXPECT_EQ(verdict(0, 0.0), Verdict::held);
  EXPECT_EQ(verdict(0, kOrder), Verdict::held);
  EXPECT_EQ(verdict(0, 1e-5), Verdict::violated) << "more than the sums round";
  EXPECT_EQ(verdict(1, kOrder), Verdict::violated) << "one token is no sum";
  EXPECT_EQ(verdict(0, kOrder, grpo().signature.forms.front()), Verdict::violated)
      << "the differences are added up";
}

TEST(RuleB7, EachFormOfK3HasItsOwnBound) {
  Case c = on_policy_case(1, 1);
  put(c, "advantage", 0, 0, 0.0);
  put(c, "ref_log_prob", 0, 0, get(c, "log_prob", 0, 0) + 1e-3);
  const auto bound = [&](const char* form, const char* output) {
    return expected(c, output, 0, plain_arithmetic(Dtype::f32, form)).err;
  };
  const char *closed = "expm1(x) - x, closed", *open = "expm1(x) - x", *power = "exp(x) - x - 1";
  EXPECT_EQ(bound(open, "per_token"), bound(closed, "per_token"));
  EXPECT_GT(bound(power, "per_token"), 100.0 * bound(closed, "per_token"));
  // The closed slope is the number that was there; the others come from a difference with 1.
  EXPECT_GT(bound(open, "gradient.log_prob"), 100.0 * bound(closed, "gradient.log_prob"));
  // What is left after the first subtraction is rounded: e^2 - 1 is more than e^2 - 2.
  put(c, "ref_log_prob", 0, 0, get(c, "log_prob", 0, 0) + 2.0);
  EXPECT_LT(bound(power, "per_token"), bound("exp(x) - 1 - x", "per_token"));
}

/// Nothing but the policy term, wide clips: the gradient is one product.
Case sensitive_case() {
  Case c = grpo_case(2, 4);
  c.spec.set("kl_penalty", 0.0);
  c.spec.set("clip_low", 0.9);
  c.spec.set("clip_high", 4.0);
  for (std::int64_t i = 0; i < 8; ++i) {
    put_log_ratio(c, i / 4, i % 4, -1.0 + 0.25 * static_cast<double>(i));
  }
  return c;
}

TEST(Sensitivity, ABiasOfAMillionthInOneGradientIsFoundAndAHundredthOfItIsNot) {
  for (std::int64_t live = 0; live < 8; ++live) {
    Case c = sensitive_case();
    for (std::int64_t i = 0; i < live; ++i) mask_out(c, i / 4, i % 4);  // the first valid one
    const auto with = [&](double bias) {
      return check("reference_agreement", fake_grpo(Flaw::one_slope_biased, bias), c).verdict;
    };
    EXPECT_EQ(with(1e-6), Verdict::violated) << "token " << live;
    EXPECT_EQ(with(1e-8), Verdict::held) << "token " << live;
  }
}

TEST(RuleF3, ABoundTenTimesAsWideLosesTheBiasOfAMillionth) {
  impl::Implementation biased = fake_grpo(Flaw::one_slope_biased, 1e-6);
  const auto declared = biased.arithmetic;
  biased.arithmetic = [&](Dtype dtype) {
    Arithmetic wide = declared(dtype);
    wide.roundoff *= 10.0;
    wide.sum.roundoff *= 10.0;
    return wide;
  };
  EXPECT_EQ(check("reference_agreement", biased, sensitive_case()).verdict, Verdict::held);
}

}  // namespace
}  // namespace lossgate::properties
