// SPDX-License-Identifier: Apache-2.0
// Rules C and D of README.md, as far as GRPO can show them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/agreement.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A log-ratio without bound at the first token; the rest is benign.
Case unbounded_case(double log_ratio, double advantage, Dtype dtype = Dtype::f32) {
  Case c = grpo_case(2, 3, dtype);
  c.spec.set("log_ratio_clamp", None{});
  put_log_ratio(c, 0, 0, log_ratio);
  put(c, "ref_log_prob", 0, 0, 0.0);
  put(c, "advantage", 0, 0, advantage);
  return c;
}

/// An implementation that changes an entry of the sound result.
impl::Implementation with_entry(std::size_t output, std::int64_t index, double value) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [=, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    if (!result.refusal) result.outputs[output].tensor.set(index, value);
    return result;
  };
  return fake;
}

TEST(RuleC1, WhatAClipLeavesBehindMustBeFinite) {
  for (double log_ratio : {89.0, 400.0, 1e4}) {
    const Case c = unbounded_case(log_ratio, 1.0);  // the clip bounds the weight
    EXPECT_EQ(check("finite_forward", fake_grpo(), c).verdict, Verdict::held);
    EXPECT_EQ(check("finite_forward", with_entry(0, 0, kInfinity), c).verdict, Verdict::violated);
    EXPECT_EQ(check("finite_forward", with_entry(1, 0, kNan), c).verdict, Verdict::violated);
    EXPECT_EQ(check("finite_backward", with_entry(2, 0, kNan), c).verdict, Verdict::violated);
  }
}

TEST(RuleC1, ForwardAndBackwardFailOneWithoutTheOther) {
  const Case c = grpo_case(2, 3);
  const auto forward = with_entry(0, 0, kInfinity), backward = with_entry(2, 1, -kInfinity);
  EXPECT_EQ(check("finite_forward", forward, c).verdict, Verdict::violated);
  EXPECT_EQ(check("finite_backward", forward, c).verdict, Verdict::held);
  EXPECT_EQ(check("finite_forward", backward, c).verdict, Verdict::held);
  EXPECT_EQ(check("finite_backward", backward, c).verdict, Verdict::violated);
}

TEST(RuleC1, TheFirstEntryThatIsNotFiniteIsShown) {
  auto fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    for (const std::int64_t at : {1, 4}) result.outputs.back().tensor.set(at, kNan);
    return result;
  };
  const Outcome outcome = check("finite_backward", fake, grpo_case(2, 3));
  EXPECT_EQ(outcome.violation->place.index, 1);
  EXPECT_EQ(outcome.violation->allowed, 0.0);
}

TEST(RuleC1, AGradientThatNeedNotBeFiniteShowsNothingOfOneThatIs) {
  Case c = grpo_case(1, 1);
  c.upstream = 3e38;
  put(c, "advantage", 0, 0, 3.0);
  EXPECT_EQ(check("finite_backward", with_entry(2, 0, 1.0), c).reason, "no trigger");
  EXPECT_EQ(check("finite_forward", with_entry(2, 0, 1.0), c).verdict, Verdict::held);
}

TEST(RuleC1, AGradientThatItsDtypeAloneDoesNotHoldShowsNothingEither) {
  Case c = grpo_case(1, 1, Dtype::f16);
  c.upstream = 3e4;
  put(c, "advantage", 0, 0, 3.0);  // the gradient is computed in f32, which has numbers for it
  EXPECT_EQ(check("finite_backward", with_entry(2, 0, 1.0), c).reason, "no trigger");
}

TEST(RuleC2, AnOverflowOfTheFormulaItselfIsNoFinding) {
  const Case c = unbounded_case(100.0, -1.0);  // nothing bounds this weight
  for (const char* property : {"finite_forward", "finite_backward", "reference_agreement"}) {
    EXPECT_FALSE(check(property, fake_grpo(), c).violation) << property;
    EXPECT_FALSE(check(property, with_entry(2, 0, kNan), c).violation) << property;
  }
  EXPECT_TRUE(check("reference_agreement", with_entry(1, 0, -kInfinity), c).violation);
  EXPECT_TRUE(check("reference_agreement", with_entry(0, 0, 1.0), c).violation);
}

TEST(RuleC2, TheOtherGradientsOfAnOverflowingBatchAreFinite) {
  const Case c = unbounded_case(100.0, -1.0);
  EXPECT_EQ(check("finite_backward", with_entry(2, 4, kNan), c).verdict, Verdict::violated);
}

TEST(RuleC2, AZeroAdvantageAnnihilatesAnOverflowingWeight) {
  const Case c = unbounded_case(200.0, 0.0);
  EXPECT_EQ(check("finite_backward", fake_grpo(), c).verdict, Verdict::held);
  EXPECT_EQ(check("finite_backward", fake_grpo(Flaw::zero_multiplied), c).verdict,
            Verdict::violated);
}

TEST(RuleC2, DeclaredBoundsHoldInAnyCase) {
  Case c = grpo_case(1, 1);
  put(c, "advantage", 0, 0, 0.0);
  put(c, "ref_log_prob", 0, 0, 1e4);  // KL is at most 10, its penalty 0.04
  EXPECT_EQ(check("reference_agreement", fake_grpo(), c).verdict, Verdict::held);
  EXPECT_EQ(check("reference_agreement", with_entry(0, 0, 0.41), c).verdict, Verdict::violated);
}

TEST(RuleC3, ANanThatSurfacesBehindAZeroAdvantageIsRight) {
  Case c = grpo_case(1, 2);
  put(c, "log_prob", 0, 0, kNan);
  put(c, "advantage", 0, 0, 0.0);
  c.spec.set("kl_penalty", 0.0);
  for (const Property& property : catalog()) {
    if (property.tier == Tier::hardening) continue;
    EXPECT_FALSE(check(property.name, fake_grpo(Flaw::zero_multiplied), c).violation)
        << property.name;
  }
}

TEST(Splits, ThatAreNotComputedAreNotAsked) {
  impl::Implementation picky = fake_grpo();
  picky.evaluate = [sound = picky.evaluate](const LossSignature& signature, const Case& c) {
    if (c.split.whole() && c.shape[Axis::sequences] == 2) return sound(signature, c);
    LossResult refused;
    refused.refusal = Refusal{.argument = impl::kNotComputed, .message = "two rows at a time"};
    return refused;
  };
  Case c = grpo_case(2, 3);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, picky);
  for (const char* property : {"split_invariance", "padding_invariance"}) {
    const Outcome outcome = check_all(evaluation, {find_property(property)}, true).front();
    EXPECT_EQ(outcome.verdict, Verdict::skipped) << property;
    EXPECT_EQ(outcome.reason, "unsupported: two rows at a time") << property;
  }
  EXPECT_EQ(check("reference_agreement", picky, c).verdict, Verdict::held);
}

TEST(RuleB3, PaddingThatCountsIsSaidToBeWhatWasAdded) {
  auto fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    Tensor& loss = result.outputs.front().tensor;
    if (c.shape[Axis::tokens] > 3) loss.set(0, loss.at(0) + 1.0);
    return result;
  };
  Case c = grpo_case(2, 3);
  c.spec.reduction = Reduction::sequence_mean;
  reference::Loss loss = grpo();
  for (const EmptyRows rows : {EmptyRows::skipped, EmptyRows::counted}) {
    loss.signature.empty_rows = rows;
    CaseStudy study(loss, c);
    Evaluation evaluation(study, fake);
    const Outcome outcome = find_property("padding_invariance")->check(evaluation);
    ASSERT_TRUE(outcome.violation);
    EXPECT_EQ(outcome.violation->detail, rows == EmptyRows::skipped
                                             ? "masked columns and a masked row were added"
                                             : "masked columns were added");
  }
}

TEST(RuleC4, MaskedDataOfAnyKindIsInert) {
  for (double sentinel : {1e4, kInfinity, -kInfinity, kNan}) {
    Case c = grpo_case(2, 3);
    mask_out(c, 1, 1);
    put(c, "log_prob", 1, 1, sentinel);
    put(c, "advantage", 1, 1, sentinel);
    for (const char* property :
         {"masked_positions_inert", "finite_forward", "finite_backward", "reference_agreement"}) {
      EXPECT_EQ(check(property, fake_grpo(), c).verdict, Verdict::held) << property;
    }
  }
}

TEST(RuleC4, AGradientAtAMaskedPositionIsOneWhereCallersLeaveNothingButZeros) {
  reference::Loss loss = grpo();
  for (Field& field : loss.signature.fields) field.masked = Masked::zero;
  Case c = grpo_case(2, 3);
  mask_out(c, 1, 1);
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob", "advantage"}) {
    put(c, field, 1, 1, 0.0);
  }
  const auto verdict = [&](const impl::Implementation& implementation, const Case& asked) {
    CaseStudy study(loss, asked);
    Evaluation evaluation(study, implementation);
    return find_property("masked_positions_inert")->check(evaluation).verdict;
  };
  EXPECT_EQ(verdict(with_entry(2, 4, 1e-9), c), Verdict::violated);
  EXPECT_EQ(verdict(fake_grpo(), c), Verdict::held);
  EXPECT_EQ(verdict(fake_grpo(), grpo_case(2, 3)), Verdict::vacuous);
}

TEST(RuleC4, TheGradientIsZeroAtEveryMaskedPositionFirstAndLast) {
  for (std::int64_t at = 0; at < 6; ++at) {
    Case c = grpo_case(2, 3);
    mask_out(c, at / 3, at % 3);
    auto fake = fake_grpo();
    fake.evaluate = [at, sound = fake.evaluate](const LossSignature& signature, const Case& x) {
      LossResult result = sound(signature, x);
      result.outputs.back().tensor.set(at, 1e-30);
      return result;
    };
    const Outcome outcome = check("masked_positions_inert", fake, c);
    ASSERT_TRUE(outcome.violation) << at;
    EXPECT_EQ(outcome.violation->place.index, at);
    EXPECT_EQ(outcome.violation->expected, 0.0L);
    EXPECT_EQ(outcome.violation->cause, "gradient at a masked position");
  }
}

TEST(RuleC4, WhatAnOutputThatIsNoGradientHasAtAMaskedPositionIsTheReferencesMatter) {
  Case c = grpo_case(2, 3);
  mask_out(c, 0, 1);
  const auto fake = with_entry(1, 1, 7.0);
  EXPECT_EQ(check("masked_positions_inert", fake, c).verdict, Verdict::held);
  EXPECT_EQ(check("reference_agreement", fake, c).verdict, Verdict::violated);
}

TEST(RuleC4, OfTwoAnswersTheOneThatIsNoNumberIsWrong) {
  Case c = grpo_case(2, 3);
  mask_out(c, 0, 1);
  put(c, "advantage", 0, 1, 7.0);
  for (const bool given : {false, true}) {  // with the given data behind the mask, or with others
    impl::Implementation fake = fake_grpo();
    fake.evaluate = [=, sound = fake.evaluate](const LossSignature& signature, const Case& x) {
      LossResult result = sound(signature, x);
      if ((get(x, "advantage", 0, 1) == 7.0) == given) result.outputs[0].tensor.set(0, kNan);
      return result;
    };
    const Outcome outcome = check("masked_positions_inert", fake, c);
    ASSERT_TRUE(outcome.violation) << given;
    EXPECT_TRUE(std::isnan(outcome.violation->actual)) << given;
    EXPECT_TRUE(std::isfinite(outcome.violation->expected)) << given;
    EXPECT_EQ(outcome.violation->cause, "non-finite value behind a mask") << given;
  }
}

TEST(RuleC4, NonFiniteMaskedDataOutsideTheContractIsANote) {
  Case c = grpo_case(2, 3);
  mask_out(c, 1, 1);
  impl::Implementation fake = fake_grpo(Flaw::mask_multiplied);
  EXPECT_EQ(check("masked_positions_inert", fake, c).verdict, Verdict::violated);
  fake.contract.non_finite_masked = false;
  EXPECT_EQ(check("masked_positions_inert", fake, c).verdict, Verdict::note);
  impl::Implementation leaks = fake_grpo(Flaw::masked_data_read);
  leaks.contract.non_finite_masked = false;
  EXPECT_EQ(check("masked_positions_inert", leaks, c).verdict, Verdict::violated);
}

TEST(RuleC4, WhoseBitsVaryIsAskedForNoneAndForTheSameLossStill) {
  Case c = grpo_case(2, 3);
  mask_out(c, 1, 1);
  impl::Implementation varies = fake_grpo(Flaw::order_varies);
  EXPECT_EQ(check("masked_positions_inert", varies, c).verdict, Verdict::violated);
  varies.contract.deterministic = false;
  EXPECT_EQ(check("masked_positions_inert", varies, c).verdict, Verdict::held);
  impl::Implementation leaks = fake_grpo(Flaw::mask_multiplied);
  leaks.contract.deterministic = false;
  EXPECT_EQ(check("masked_positions_inert", leaks, c).verdict, Verdict::violated);
}

TEST(RuleC4, WithoutAMaskedPositionNothingIsShown) {
  EXPECT_EQ(check("masked_positions_inert", fake_grpo(), grpo_case(2, 3)).reason, "no trigger");
}

TEST(RuleC6, TellsWhatItMaskedItself) {
  const auto detail = [](const Case& c) {
    return check("empty_is_zero", fake_grpo(Flaw::empty_divided), c).violation->detail;
  };
  Case c = grpo_case(2, 3);
  EXPECT_EQ(detail(c), "every position masked by the property, so everything is exactly 0");
  for (std::int64_t i = 0; i < 6; ++i) c.batch.at("mask").set(i, 0.0);
  EXPECT_EQ(detail(c), "nothing is valid, so everything is exactly 0");
}

TEST(RuleC6, AnEmptyBatchMayBeAnErrorByContract) {
  impl::Implementation fake = fake_grpo(Flaw::empty_divided);
  EXPECT_EQ(check("empty_is_zero", fake, grpo_case(2, 3)).violation->expected, 0.0L);
  fake.contract.empty = Empty::nan;
  EXPECT_EQ(check("empty_is_zero", fake, grpo_case(2, 3)).reason, "contract");
  Case empty = grpo_case(2, 3);
  for (std::int64_t i = 0; i < 6; ++i) empty.batch.at("mask").set(i, 0.0);
  EXPECT_EQ(check("finite_forward", fake, empty).reason, "contract");
  fake.contract.empty = Empty::error;
  fake.evaluate = [](const LossSignature&, const Case&) {
    LossResult refused;
    refused.refusal = Refusal{"mask", -1, -1, "nothing is valid"};
    return refused;
  };
  EXPECT_EQ(check("reference_agreement", fake, empty).reason, "contract");
  EXPECT_EQ(check("finite_forward", fake_grpo(Flaw::empty_divided), empty).verdict,
            Verdict::violated);
}

TEST(RuleC6, AGradientOfNothingByNothingIsAnEmptyDivisorForEveryProperty) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    const std::vector<bool> valid = valid_positions(signature, c);
    const bool empty = std::ranges::find(valid, true) == valid.end();
    for (auto& [name, tensor] : result.outputs) {
      for (std::int64_t i = 0; empty && i < tensor.size(); ++i) tensor.set(i, std::nan(""));
    }
    return result;
  };
  Case empty = grpo_case(2, 3);
  for (std::int64_t i = 0; i < 6; ++i) empty.batch.at("mask").set(i, 0.0);
  for (const char* property : {"masked_positions_inert", "zero_advantage_zero_gradient"}) {
    const Outcome outcome = check(property, fake, empty);
    ASSERT_TRUE(outcome.violation) << property;
    EXPECT_EQ(outcome.violation->cause, "empty divisor") << property;
  }
}

TEST(RuleC6, WhatOverflowsInAnotherRowIsNotBlamedOnAnEmptyOne) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    for (auto& [name, tensor] : result.outputs) {  // as where a square comes first
      if (name == "loss" && std::fabs(tensor.at(0)) > 1e37) tensor.set(0, HUGE_VAL);
    }
    return result;
  };
  Case c = grpo_case(2, 1);
  c.spec.set("log_ratio_clamp", None{});
  put(c, "advantage", 0, 0, -1e38);
  put(c, "advantage", 1, 0, -1e38);
  for (std::int64_t s = 0; s < 2; ++s) put_log_ratio(c, s, 0, 0.0);
  EXPECT_EQ(check("finite_forward", fake, c).verdict, Verdict::violated);
  for (std::int64_t s = 0; s < 2; ++s) {
    Case beyond = c;  // the mean is beyond the largest number, the other row alone is not
    put_log_ratio(beyond, s, 0, 4.0);
    EXPECT_EQ(check("finite_forward", fake, beyond).verdict, Verdict::held);
    EXPECT_EQ(check("empty_is_zero", fake, beyond).verdict, Verdict::held);
  }
}

TEST(RuleC8, ADeadSignalIsCalledOne) {
  const Outcome outcome = check("reference_agreement", with_entry(2, 0, 0.0), grpo_case(2, 3));
  EXPECT_EQ(outcome.violation->cause, "dead signal");
}

TEST(RuleD1, EmptyAndRaggedPartsChangeNothing) {
  Case c = grpo_case(5, 3);
  c.split = {.world = 3, .parts = {{0, {4}}, {1, {}}, {2, {0, 1, 3}}, {0, {2}}}};
  for (Reduction reduction : {Reduction::token_mean, Reduction::sequence_mean, Reduction::sum}) {
    c.spec.reduction = reduction;
    EXPECT_EQ(check("split_invariance", fake_grpo(), c).verdict, Verdict::held);
  }
  c.split = {};
  EXPECT_EQ(check("split_invariance", fake_grpo(Flaw::mean_of_means), c).reason, "no trigger");
}

/// 100 tokens at 0.5 and 900 at 0.3 (NovaSky-AI/SkyRL#925): 0.32, not 0.40.
TEST(RuleD1, ASplitIsHeldAgainstTheBoundOfItsParts) {
  Case c = grpo_case(4, 4);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}, {0, {2, 3}}}};
  double off = 0x1p-10;
  Outcome whole, split;
  // It does not look at the split: the same loss, as far off as may be, has more room there.
  do {
    off /= 2;
    auto fake = fake_grpo();
    fake.evaluate = [off, sound = fake.evaluate](const LossSignature& signature, Case x) {
      x.split = {};
      LossResult result = sound(signature, x);
      Tensor& loss = result.outputs.front().tensor;
      loss.set(0, loss.at(0) * (1.0 + off));
      return result;
    };
    whole = check("reference_agreement", fake, c);
    split = check("split_invariance", fake, c);
  } while (whole.violation);
  EXPECT_EQ(split.verdict, Verdict::held);
  EXPECT_LT(split.worst_ratio, 0.99 * whole.worst_ratio);
}

TEST(RuleD2, TheMeanOfMicroBatchMeansIsShownWithItsBias) {
  Case c = grpo_case(2, 900);
  c.spec.set("kl_penalty", 0.0);
  c.batch.at("old_log_prob") = c.batch.at("log_prob");
  for (std::int64_t t = 0; t < 900; ++t) {
    put(c, "advantage", 0, t, -0.5), put(c, "advantage", 1, t, -0.3);
    if (t >= 100) mask_out(c, 0, t);
  }
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  EXPECT_EQ(check("split_invariance", fake_grpo(), c).verdict, Verdict::held);
  const Outcome outcome = check("split_invariance", fake_grpo(Flaw::mean_of_means), c);
  ASSERT_EQ(outcome.verdict, Verdict::violated);
  EXPECT_EQ(outcome.violation->place.output, "loss");
  EXPECT_NEAR(outcome.violation->actual, 0.40, 2e-6);
  EXPECT_NEAR(static_cast<double>(outcome.violation->expected), 0.32, 2e-6);
  EXPECT_NE(outcome.violation->detail.find("over 24 random splits the loss is off by"),
            std::string::npos)
      << outcome.violation->detail;
  EXPECT_NE(outcome.violation->detail.find("at worst"), std::string::npos);
  const SplitBias& bias = outcome.violation->split_bias;
  ASSERT_EQ(bias.off_by.size(), 24u);
  EXPECT_NEAR(*std::ranges::min_element(bias.off_by), -0.75, 1e-5) << "a quarter of the whole";
  EXPECT_EQ(bias.worst, "[] [] [0, 1] [] on 1 rank");
}

}  // namespace
}  // namespace lossgate::properties
