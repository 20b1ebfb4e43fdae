// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "properties/fake_grpo.h"
#include "properties/given_loss.h"

namespace lossgate::properties {
namespace {

using reference::Inputs;
using reference::Outputs;
using reference::Real;
using reference::Tracked;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Dtype kFloats[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

thread_local Given given_now;

const reference::Loss& given_loss() {
  static const reference::Loss loss = [] {
    const std::vector<Axis> per_token = {Axis::sequences, Axis::tokens};
    reference::Loss made = grpo();
    made.signature = {};
    made.signature.id = "given";
    made.signature.fields = {{.name = "x", .role = Role::differentiable, .axes = per_token}};
    made.signature.outputs = {{.name = "value", .axes = per_token}};
    made.signature.reductions = {Reduction::sum};
    made.evaluate = [](const Inputs<Tracked>&, const Outputs<Tracked>& out) {
      out.writer("loss")(given_now.loss);
      out.writer("value")(given_now.value, 0, 0);
      out.gradient("x")(given_now.gradient, 0, 0);
    };
    return made;
  }();
  return loss;
}

Case given_case(Dtype dtype, double upstream) {
  Case c;
  c.spec = standard_spec(given_loss().signature);
  c.shape[Axis::sequences] = c.shape[Axis::tokens] = 1;
  c.batch.fields = {{"x", Tensor::zeros(dtype, {1, 1})}};
  c.upstream = upstream;
  return c;
}

LossResult given_result(const CaseStudy& study, const Actual& actual) {
  LossResult result;
  const double values[] = {actual.loss, actual.value, actual.gradient};
  for (std::size_t i = 0; i < 3; ++i) {
    const OutputInfo& output = study.outputs()[i];
    result.outputs.push_back({output.name, Tensor::zeros(output.dtype, output.extents)});
    result.outputs.back().tensor.set(0, values[i]);
  }
  return result;
}

bool holds(const Tracked& expected, double actual, Dtype dtype = Dtype::f32) {
  return !judge(expected, actual, dtype).violation;
}

}  // namespace

Tracked near(Real value, double err, double half) {
  return {value, err, static_cast<double>(std::fabs(value)), half};
}

CaseStudy given_study(const Given& given, Dtype dtype, double upstream) {
  given_now = given;
  return CaseStudy(given_loss(), given_case(dtype, upstream));
}

Outcome compare_with(const Given& given, const Actual& actual, Dtype dtype, double upstream,
                     std::optional<Dtype> computed) {
  CaseStudy study = given_study(given, dtype, upstream);
  const Arithmetic arithmetic = plain_arithmetic(computed.value_or(dtype), "");
  return compare({.study = study, .arithmetic = arithmetic, .actual = given_result(study, actual)});
}

Outcome judge(const Tracked& expected, double actual, Dtype dtype) {
  return compare_with({.gradient = expected}, {.gradient = actual}, dtype);
}

TEST(Agreement, NanAgainstANumberIsWrong) {
  for (Dtype dtype : kFloats) {
    for (double number : {0.0, 1.0, -3.0}) EXPECT_FALSE(holds(near(number), kNan, dtype));
  }
}

TEST(RuleC5, NanIsEqualOnlyToTheNanOfTheReference) {
  EXPECT_EQ(judge(near(NAN), kNan).compared, 2);  // loss and value; the gradient is left out
  EXPECT_TRUE(holds(near(NAN), 1.0));
  EXPECT_FALSE(holds(near(1.0), kNan));
  const Outcome all = compare_with({near(NAN), near(NAN), near(NAN)}, {kNan, kNan, kNan});
  EXPECT_EQ(all.verdict, Verdict::skipped);
  EXPECT_EQ(all.reason, "reference overflow");
  const Given one{near(4e39), near(4e39), near(NAN)};  // beyond f32 anything large will do
  EXPECT_EQ(compare_with(one, {kInfinity, kInfinity, kNan}).reason, "reference overflow");
  const Given none{near(4e39), near(4e39), near(4e39)};
  EXPECT_EQ(compare_with(none, {kInfinity, kInfinity, kInfinity}).reason, "nothing to compare");
}

TEST(RuleC1, AnInfinityForANumberThatFitsIsWrong) {
  for (Dtype dtype : kFloats) {
    EXPECT_FALSE(holds(near(1.0), kInfinity, dtype));
    EXPECT_FALSE(holds(near(1.0), -kInfinity, dtype));
    EXPECT_FALSE(holds(near(max_finite(dtype)), kInfinity, dtype)) << name(dtype);
  }
}

TEST(RuleC1, EachOutputIsAskedSeparately) {
  const Given given{near(1.0), near(1.0), near(1.0)};
  EXPECT_EQ(compare_with(given, {kInfinity, 1.0, 1.0}).violation->place.output, "loss");
  EXPECT_EQ(compare_with(given, {1.0, kInfinity, 1.0}).violation->place.output, "value");
  EXPECT_EQ(compare_with(given, {1.0, 1.0, kInfinity}).violation->place.output, "gradient.x");
}

TEST(RuleC2, BeyondTheRangeInfinityOfTheRightSignLargestNumberAndNanAreRight) {
  for (Dtype dtype : kFloats) {
    const Real beyond = 4.0L * max_finite(dtype);
    for (Real value : {beyond, static_cast<Real>(kInfinity)}) {
      if (std::isinf(static_cast<double>(value)) && !std::isinf(value))
        continue;  // nothing is said
      EXPECT_TRUE(holds(near(value), kInfinity, dtype));
      EXPECT_TRUE(holds(near(value), max_finite(dtype), dtype));
      EXPECT_TRUE(holds(near(value), kNan, dtype));
      EXPECT_FALSE(holds(near(value), -kInfinity, dtype)) << name(dtype);
      EXPECT_FALSE(holds(near(value), -max_finite(dtype), dtype));
      EXPECT_FALSE(holds(near(value), 3.0, dtype)) << name(dtype);
      EXPECT_TRUE(holds(near(-value), -kInfinity, dtype));
      EXPECT_FALSE(holds(near(-value), kInfinity, dtype));
      EXPECT_FALSE(holds(near(-value), 0.0, dtype));
    }
  }
}

TEST(RuleC2, APeakThatDoesNotFitExcusesNanButNotAWrongNumber) {
  Tracked behind = near(1.0, 1e-6);
  behind.peak = 1e39;
  EXPECT_TRUE(holds(behind, kNan));
  EXPECT_TRUE(holds(behind, -kInfinity));
  EXPECT_TRUE(holds(behind, 1.0));
  EXPECT_FALSE(holds(behind, 2.0));
  behind.peak = 1e38;
  EXPECT_FALSE(holds(behind, kNan));
}

TEST(RuleC2, APartialSumFartherOutThanItsValueMayHaveOverflowedWithTheOtherSign) {
  Tracked sum = near(1e39);
  EXPECT_FALSE(holds(sum, -kInfinity));
  sum.peak = 1e40;
  for (const double sign : {1.0, -1.0}) {
    EXPECT_TRUE(holds(sum, sign * kInfinity)) << sign;
    EXPECT_TRUE(holds(sum, sign * max_finite(Dtype::f32))) << sign;
    EXPECT_FALSE(holds(sum, sign * 1e38)) << sign;
  }
}

TEST(RuleC2, ANumberBeyondTheComputeFormatMayBeInfiniteInAnOutputThatWouldHoldIt) {
  const auto wrong = [](double value, double actual) {
    const Given given{.gradient = near(value)};
    return compare_with(given, {.gradient = actual}, Dtype::f32, 1.0, Dtype::f16)
        .violation.has_value();
  };
  EXPECT_FALSE(wrong(1e5, kInfinity)) << "beyond f16";
  EXPECT_FALSE(wrong(1e5, kNan));
  EXPECT_TRUE(wrong(1e4, kInfinity));
  EXPECT_TRUE(wrong(1e5, -kInfinity)) << "of the wrong sign";
  EXPECT_FALSE(wrong(7e4, max_finite(Dtype::f16))) << "the largest that there is";
  EXPECT_TRUE(wrong(7e4, 6e4));
  EXPECT_TRUE(wrong(1e5, 1e6)) << "another number";
}

TEST(RuleC1, PartsAloneMayAddUpTheirGradientsInTheDtypeThatKeepsThem) {
  Tracked gradient = near(1.0);
  gradient.peak = 1e5;  // beyond f16, and not beyond f32, in which it is computed
  const Given given{.gradient = gradient};
  CaseStudy study = given_study(given, Dtype::f16);
  const LossResult nan = given_result(study, {.gradient = kNan});
  for (const bool split : {false, true}) {
    const Outcome outcome = compare({.study = study,
                                     .arithmetic = plain_arithmetic(Dtype::f32, ""),
                                     .actual = nan,
                                     .split = split});
    EXPECT_EQ(outcome.violation.has_value(), !split);
  }
}

TEST(RuleC1, WhatMayRoundBeyondTheRangeNeedNotBeFinite) {
  const OutputInfo output{.name = "", .field = "", .dtype = Dtype::f32, .axes = {}, .extents = {}};
  const auto must = [&](double v, double err, double peak, double half) {
    return must_be_finite(plain_arithmetic(Dtype::f32, ""), output, {v, err, peak, half});
  };
  const double largest = max_finite(Dtype::f32);
  EXPECT_TRUE(must(largest, 0.0, largest, 0.0));
  EXPECT_FALSE(must(largest, 1e30, largest, 0.0));
  EXPECT_FALSE(must(largest, 0.0, largest, 1e30));
  EXPECT_TRUE(must(largest - 3e30, 1e30, largest, 1e30));
  // A peak holds the margin of what it was made of, and not of what it has become.
  EXPECT_TRUE(must(1.0, 1e30, largest, 1e30));
  EXPECT_FALSE(must(1.0, 0.0, largest * (1.0 + 0x1p-50), 0.0));
}

TEST(RuleC2, WhatMayRoundBeyondTheRangeMayBeInfinite) {
  const double below = max_finite(Dtype::f32) - 3e30;
  EXPECT_FALSE(holds(near(below, 1e30), kInfinity));
  EXPECT_TRUE(holds(near(below, 2e30), kInfinity));
  EXPECT_FALSE(holds(near(below, 2e30), -kInfinity));
}

TEST(RuleC2, AtAKinkAnInfinityOfEitherSignCanBeTheAnswer) {
  EXPECT_TRUE(holds(near(1e30, 0.0, 1e39), -kInfinity));
  EXPECT_FALSE(holds(near(1e39, 0.0, 1e30), -kInfinity));
}

TEST(RuleC2, ZeroUpstreamExcusesNanWhereTheForwardOverflows) {
  const Given overflows{.value = near(1e39)};
  const Given fits{.value = near(1.0)};
  EXPECT_FALSE(compare_with(overflows, {0.0, kInfinity, kNan}, Dtype::f32, 0.0).violation);
  EXPECT_TRUE(compare_with(overflows, {0.0, kInfinity, kInfinity}, Dtype::f32, 0.0).violation);
  EXPECT_TRUE(compare_with(overflows, {0.0, kInfinity, kNan}, Dtype::f32, 1.0).violation);
  EXPECT_TRUE(compare_with(fits, {0.0, 1.0, kNan}, Dtype::f32, 0.0).violation);
  // Another position's overflow, or the sum's, is none of this position's business.
  const Given elsewhere{.loss = near(1e39)};
  EXPECT_TRUE(compare_with(elsewhere, {kInfinity, 0.0, kNan}, Dtype::f32, 0.0).violation);
}

TEST(RuleC2, ZeroUpstreamExcusesNanWhereTheSlopeOverflows) {
  const Given steep{.loss = near(1.0), .gradient = near(kInfinity)};
  EXPECT_FALSE(compare_with(steep, {1.0, 0.0, kNan}, Dtype::f32, 0.0).violation);
  EXPECT_TRUE(compare_with(steep, {kNan, 0.0, kNan}, Dtype::f32, 0.0).violation);
}

TEST(Agreement, ZerosOfEitherSignAreEqualAndNothingElseIsAnExactZero) {
  for (Dtype dtype : kFloats) {
    EXPECT_TRUE(holds({}, 0.0, dtype));
    EXPECT_TRUE(holds({}, -0.0, dtype));
    EXPECT_FALSE(holds({}, min_subnormal(dtype), dtype)) << name(dtype);
    EXPECT_FALSE(holds({}, -min_subnormal(dtype), dtype));
  }
}

TEST(RuleB3, StorageCountsAtEveryEdgeOfTheDtype) {
  for (Dtype dtype : kFloats) {
    const double u = unit_roundoff(dtype), least = min_subnormal(dtype);
    EXPECT_TRUE(holds(near(1.0), 1.0 + 2.0 * u, dtype));
    EXPECT_FALSE(holds(near(1.0), 1.0 + 6.0 * u, dtype)) << name(dtype);
    const Real half = static_cast<Real>(least) / 2;
    EXPECT_TRUE(holds(near(half), 0.0, dtype));
    EXPECT_TRUE(holds(near(half), least, dtype));
    EXPECT_FALSE(holds(near(half), 4.0 * least, dtype)) << name(dtype);
    EXPECT_TRUE(holds(near(min_normal(dtype)), min_normal(dtype), dtype));
    EXPECT_TRUE(holds(near(max_finite(dtype)), max_finite(dtype), dtype));
    EXPECT_FALSE(holds(near(max_finite(dtype)), max_finite(dtype) * (1.0 - 8.0 * u), dtype));
  }
}

TEST(RuleB3, TheThresholdIsTwoBoundsWide) {
  EXPECT_TRUE(holds(near(1.0, 1e-3), 1.00199));
  EXPECT_FALSE(holds(near(1.0, 1e-3), 1.00201));
}

TEST(RuleB3, AStoreInANarrowerFormatIsOneRoundingAndNoEstimate) {
  const auto off_by = [](double ulps, double err, Dtype computed) {
    const double actual = 1.0 + ulps * 0x1p-7;
    const Given given{.gradient = near(1.0, err)};
    return compare_with(given, {.gradient = actual}, Dtype::bf16, 1.0, computed)
        .violation.has_value();
  };
  // Half a unit in the last place is a rounding, a whole one is truncation or a bias.
  EXPECT_FALSE(off_by(1.0, 0.0, Dtype::bf16));
  EXPECT_TRUE(off_by(1.0, 0.0, Dtype::f32));
  EXPECT_FALSE(off_by(1.0, 0x1p-9, Dtype::f32));  // T err and the store
  EXPECT_TRUE(off_by(1.0, 0x1p-10, Dtype::f32));
  EXPECT_TRUE(off_by(2.0, 0x1p-9, Dtype::f32));
}

TEST(RuleB4, TheComparisonIsMadeHoweverSmallTheValueIsBesideItsBound) {
  EXPECT_EQ(judge(near(1e-3, 1.0), 3.0).verdict, Verdict::violated);
  const Given small{near(1e-3, 1.0), near(1e-3, 1.0), near(1e-3, 1.0)};
  const Outcome outcome = compare_with(small, {0.5, 0.5, 0.5});
  EXPECT_EQ(outcome.verdict, Verdict::vacuous);
  EXPECT_EQ(outcome.reason, "no digit");
  EXPECT_EQ(outcome.no_digit, 3);
}

TEST(RuleB4, OneDigitIsEnoughToHold) {
  EXPECT_EQ(judge(near(1.0, 0.4), 0.9).verdict, Verdict::held);
  EXPECT_EQ(judge(near(1.0, 0.4), 0.9).no_digit, 0);
  EXPECT_EQ(judge(near(1e-6, 1e-6), 1e-6).no_digit, 1) << "however small it is";
}

TEST(RuleB4, WhereZeroIsRightThereIsNoDigit) {
  const double barely = 0.5 - unit_roundoff(Dtype::f32);  // and what the store adds
  for (const double off : {-0x1p-20, 0.0, 0x1p-20}) {
    const Tracked expected = near(1.0, barely + off);
    EXPECT_EQ(holds(expected, 0.0), off >= 0.0) << off;
    EXPECT_EQ(judge(expected, 1.0).no_digit, off >= 0.0 ? 1 : 0) << off;
  }
}

TEST(RuleB4, ABrokenAnalysisClaimsNothing) {
  EXPECT_TRUE(holds(near(1.0, kInfinity), 1e30));
  EXPECT_EQ(judge(near(1.0, kInfinity), 1e30).no_digit, 1);
  EXPECT_EQ(judge(near(1.0, kInfinity), 1e30).worst_ratio, 0.0);
}

TEST(RuleB5, TheWorstRatioIsRecordedWhereEverythingHeld) {
  const Outcome outcome = judge(near(1.0, 1e-3), 1.001);
  EXPECT_EQ(outcome.verdict, Verdict::held);
  EXPECT_NEAR(outcome.worst_ratio, 1.0, 1e-3);
}

TEST(RuleB5, NothingIsRecordedOfWhatIsExact) { EXPECT_EQ(judge(near(1.0), 1.0).worst_ratio, 0.0); }

TEST(RuleB6, EveryNumberBetweenTheOneSidedSlopesIsRight) {
  const Tracked kink = near(0.5, 0.0, 0.5);
  for (double between : {0.0, 0.3, 0.5, 1.0}) EXPECT_TRUE(holds(kink, between));
  EXPECT_FALSE(holds(kink, 1.001));
  EXPECT_FALSE(holds(kink, -0.001));
}

TEST(RuleB6, TheLargestAnswerAtAKinkIsStoredWithItsOwnRounding) {
  // The true slope is 0 or 1 + u / 2; bf16 keeps 1.
  EXPECT_TRUE(holds(near(0.0, 0.0, 1.0 + 0x1p-9), 1.0 + 0x1p-7, Dtype::bf16));
}

TEST(RuleC8, AZeroGradientWhereTheFormulaHasOneIsViolated) {
  const Outcome outcome = judge(near(1.0, 1e-7), 0.0);
  EXPECT_EQ(outcome.verdict, Verdict::violated);
  EXPECT_GT(outcome.violation->error_ratio, 1e6);
}

TEST(Agreement, TheLossSpeaksForAllElseAndThenTheLargestRatio) {
  const Given given{near(1.0), near(1.0), near(1.0)};
  EXPECT_EQ(compare_with(given, {1.1, 2.0, 1.2}).violation->place.output, "loss");
  EXPECT_EQ(compare_with(given, {1.0, 2.0, 1.2}).violation->place.output, "value");
  EXPECT_EQ(compare_with(given, {1.0, 1.2, 2.0}).violation->place.output, "gradient.x");
}

RC_GTEST_PROP(Agreement, ACorrectlyRoundedValueAlwaysHolds, (double seed, int exponent)) {
  for (Dtype dtype : kFloats) {
    const double value = std::ldexp(std::fmod(seed, 1.0), exponent % 1000);
    const double stored = round_to(dtype, value);
    RC_ASSERT(holds(near(value), stored, dtype));
  }
}

TEST(RuleC3, ANanAnywhereAtAValidPositionLeavesNothingToCompare) {
  for (const std::int64_t t : {0, 1, 2}) {
    Case c = grpo_case(1, 3);
    mask_out(c, 0, 1);
    put(c, "log_prob", 0, t, kNan);
    const Outcome outcome = check("reference_agreement", fake_grpo(), c);
    EXPECT_EQ(outcome.reason, t == 1 ? "" : "NaN at a valid position") << t;
    impl::Implementation careful = fake_grpo();
    careful.evaluate = [](const LossSignature&, const Case&) {
      LossResult refused;
      refused.refusal = Refusal{.argument = "log_prob", .message = "not a number"};
      return refused;
    };
    EXPECT_EQ(check("reference_agreement", careful, c).violation.has_value(), t == 1) << t;
  }
}

TEST(PlaceOf, HasNoSequenceAndNoTokenWhereTheOutputHasNone) {
  const CaseStudy study(grpo(), grpo_case(2, 3));
  const Place loss = place_of(study, study.outputs().front(), 0);
  EXPECT_EQ(loss.sequence, -1);
  EXPECT_EQ(loss.token, -1);
  const Place term = place_of(study, study.outputs()[1], 5);
  EXPECT_EQ(term.sequence, 1);
  EXPECT_EQ(term.token, 2);
}

TEST(FirstDifference, SeesEveryBitButPayloadsAndSignsOfMaskedZeros) {
  Case c = grpo_case(1, 2);
  mask_out(c, 0, 1);
  CaseStudy study(grpo(), c);
  const LossResult base = fake_grpo().evaluate(grpo().signature, c);
  const auto with = [&](std::size_t output, std::int64_t index, double value) {
    LossResult other = base;
    other.outputs[output].tensor.set(index, value);
    return other;
  };
  EXPECT_FALSE(first_difference(study, base, base));
  EXPECT_FALSE(first_difference(study, with(0, 0, kNan), with(0, 0, -kNan)));
  EXPECT_TRUE(first_difference(study, base, with(0, 0, kNan)));
  EXPECT_TRUE(first_difference(study, with(0, 0, kNan), base));
  EXPECT_TRUE(first_difference(study, with(1, 0, 0.0), with(1, 0, -0.0)));
  EXPECT_TRUE(first_difference(study, with(2, 0, 0.0), with(2, 0, -0.0)));
  const auto zero = with(0, 0, 0.0), minus_zero = with(0, 0, -0.0);
  EXPECT_TRUE(first_difference(study, zero, minus_zero));
  EXPECT_FALSE(first_difference(study, zero, minus_zero, Zeros::all)) << "a sum";
  EXPECT_TRUE(first_difference(study, zero, with(0, 0, 1e-30), Zeros::all));
  EXPECT_FALSE(first_difference(study, with(2, 0, 0.0), with(2, 0, -0.0), Zeros::all))
      << "which may be made of one";
  EXPECT_FALSE(first_difference(study, base, with(1, 1, -0.0)));
  EXPECT_FALSE(first_difference(study, base, with(2, 1, -0.0)));
  const auto difference = first_difference(study, base, with(2, 1, 1e-30));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->place.token, 1);
  EXPECT_FALSE(difference->place.valid);
}

TEST(Malformed, IsPlacedAtTheOutputThatTheRefusalNames) {
  const CaseStudy study(grpo(), grpo_case(1, 1));
  const Refusal none{impl::kNoResult, -1, -1, "", {"gradient.log_prob"}};
  EXPECT_EQ(malformed(study, {{}, none, {}, {}, {}})->place.output, "gradient.log_prob");
}

}  // namespace lossgate::properties
