// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

// ---- GRPO ---------------------------------------------------------------------------------------

/// One token with importance weight w and advantage A, without a KL term.
Worked policy(double w, double advantage) {
  Worked worked("grpo", {{Axis::sequences, 1}, {Axis::tokens, 1}});
  return worked.with("kl_penalty", 0.0)
      .field("log_prob", {std::log(w)})
      .field("advantage", {advantage});
}

TEST(WorkedGrpo, OnPolicyIsMinusTheAdvantage) {
  // w = 1: -min(1 x 2, 1 x 2) = -2, and d/dlog_prob = -A w = -2.
  policy(1.0, 2.0).gives("loss", {-2.0}).gives("gradient.log_prob", {-2.0});
  policy(1.0, -3.0).gives("loss", {3.0}).gives("gradient.log_prob", {3.0});
}

TEST(WorkedGrpo, ClipsGainsOnBothSides) {
  // arXiv:1707.06347, figure 1. w = 2, A = 1: min(2, 1.2) = 1.2, clipped, no gradient.
  policy(2.0, 1.0).gives("loss", {-1.2}).gives("gradient.log_prob", {0.0});
  // w = 1/2, A = -1: min(-1/2, -0.8) = -0.8, clipped.
  policy(0.5, -1.0).gives("loss", {0.8}).gives("gradient.log_prob", {0.0});
}

TEST(WorkedGrpo, NeverClipsLosses) {
  // w = 2, A = -1: min(-2, -1.2) = -2; -A w = 2.
  policy(2.0, -1.0).gives("loss", {2.0}).gives("gradient.log_prob", {2.0});
  // w = 1/2, A = 1: min(1/2, 0.8) = 1/2.
  policy(0.5, 1.0).gives("loss", {-0.5}).gives("gradient.log_prob", {-0.5});
}

TEST(WorkedGrpo, ClipsAsymmetrically) {
  // DAPO: clip_high 0.28 alone moves the upper edge.
  policy(2.0, 1.0).with("clip_high", 0.28).gives("loss", {-1.28});
  policy(0.5, -1.0).with("clip_high", 0.28).gives("loss", {0.8});
}

TEST(WorkedGrpo, DualClipBoundsTheLossOfNegativeAdvantages) {
  // arXiv:1912.09729: A = -1, w = 4, c = 3: max(min(-4, -1.2), -3) = -3.
  policy(4.0, -1.0).with("dual_clip", 3.0).gives("loss", {3.0}).gives("gradient.log_prob", {0.0});
  policy(2.0, -1.0).with("dual_clip", 3.0).gives("loss", {2.0}).gives("gradient.log_prob", {2.0});
  policy(4.0, 1.0).with("dual_clip", 3.0).gives("loss", {-1.2});
}

TEST(WorkedGrpo, ClampsTheLogRatioBeforeExp) {
  // log-ratio 3 under a clamp at 1, A = -1: w = e, and the clamp stops the gradient; at exactly 1
  // it passes.
  policy(std::exp(3.0), -1.0)
      .with("log_ratio_clamp", 1.0)
      .gives("loss", {std::exp(1.0)})
      .gives("gradient.log_prob", {0.0});
  Worked("grpo", {{Axis::sequences, 1}, {Axis::tokens, 1}})
      .with("kl_penalty", 0.0)
      .with("log_ratio_clamp", 1.0)
      .field("log_prob", {1.0})
      .field("advantage", {-1.0})
      .gives("gradient.log_prob", {std::exp(1.0)});
}

TEST(WorkedGrpo, AtSequenceLevelUsesTheGeometricMean) {
  // GSPO, arXiv:2507.18071 eq. 7: log-ratios ln 4 and 0: w = exp(ln 4 / 2) = 2 for both tokens.
  // With A = (-1, -1): loss 2 + 2 = 4; d w / d log_prob = w / 2, so each gradient is 2 x 2 / 2 = 2.
  Worked("grpo", {{Axis::sequences, 1}, {Axis::tokens, 2}})
      .with("kl_penalty", 0.0)
      .with("level", "sequence")
      .field("log_prob", {2.0 * kLn2, 0.0})
      .field("advantage", {-1.0, -1.0})
      .gives("per_token", {2.0, 2.0})
      .gives("loss", {4.0})
      .gives("gradient.log_prob", {2.0, 2.0});
}

TEST(WorkedGrpo, AddsThePenalty) {
  // On-policy A = 2, x = ref - log_prob = ln 2: -2 + 0.5 (2 - ln 2 - 1), gradient -2 + 0.5 (1 - 2).
  policy(1.0, 2.0)
      .with("kl_penalty", 0.5)
      .field("ref_log_prob", {kLn2})
      .gives("loss", {-2.0 + 0.5 * (1.0 - kLn2)})
      .gives("gradient.log_prob", {-2.5});
}

// ---- REINFORCE ----------------------------------------------------------------------------------

TEST(WorkedReinforce, IsThePolicyGradientUnderItsWeight) {
  // A = (3, -2), w = (1/2, 3), log-probs -ln 2 and -ln 3: 3/2 ln 2 - 6 ln 3; the gradient is -A w.
  Worked worked("reinforce", {{Axis::sequences, 1}, {Axis::tokens, 2}});
  worked.field("log_prob", {-kLn2, -kLn3})
      .field("advantage", {3.0, -2.0})
      .field("importance_weight", {0.5, 3.0})
      .gives("per_token", {1.5 * kLn2, -6.0 * kLn3})
      .gives("loss", {1.5 * kLn2 - 6.0 * kLn3})
      .gives("gradient.log_prob", {-1.5, 6.0});
  worked.reduced(Reduction::token_mean).gives("gradient.log_prob", {-0.75, 3.0});
}

TEST(WorkedReinforce, HasAnInfiniteTermOfAnImpossibleTokenThatIsLearnt) {
  Worked worked("reinforce", {{Axis::sequences, 1}, {Axis::tokens, 3}});
  worked.field("log_prob", {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL})
      .field("advantage", {2.0, 0.0, 5.0})
      .field("importance_weight", {1.0, 1.0, 0.0})
      .gives("per_token", {HUGE_VAL, 0.0, 0.0})
      .gives("loss", {HUGE_VAL})
      .gives("gradient.log_prob", {-2.0, 0.0, 0.0});
}

// ---- DRO ----------------------------------------------------------------------------------------

TEST(WorkedDro, IsThePolicyGradientLessHalfOfBetaTimesASquare) {
  // A = (3, -2), d = (2, -1), beta = 1/2: 3 + 4/4 and -4 + 1/4; the gradient is beta d - A.
  Worked worked("dro", {{Axis::sequences, 1}, {Axis::tokens, 2}});
  worked.with("beta", 0.5)
      .field("log_prob", {-1.0, -2.0})
      .field("old_log_prob", {-3.0, -1.0})
      .field("advantage", {3.0, -2.0})
      .field("importance_weight", {1.0, 1.0})
      .gives("per_token", {4.0, -3.75})
      .gives("loss", {0.25})
      .gives("gradient.log_prob", {-2.0, 1.5});
  worked.field("importance_weight", {0.5, 2.0})
      .gives("per_token", {2.0, -7.5})
      .gives("loss", {-5.5})
      .gives("gradient.log_prob", {-1.0, 3.0});
  worked.reduced(Reduction::token_mean).gives("gradient.log_prob", {-0.5, 1.5});
}

TEST(WorkedDro, GivesTheNumbersOfVerlsTest) {
  Worked worked("dro", {{Axis::sequences, 1}, {Axis::tokens, 3}});
  worked.field("log_prob", {-0.8, -0.9, -0.1})
      .field("old_log_prob", {-1.0, -0.7, -0.2})
      .field("advantage", {2.0, -1.5, 9.0})
      .field("importance_weight", {1.0, 1.0, 1.0})
      .field("mask", {1.0, 1.0, 0.0})
      .gives("per_token", {1.601, -1.349, 0.0})
      .gives("gradient.log_prob", {-1.99, 1.49, 0.0});
}

TEST(WorkedDro, HasAnInfiniteTermAndSlopeWhereATokenIsImpossibleInOnePolicy) {
  Worked worked("dro", {{Axis::sequences, 1}, {Axis::tokens, 4}});
  worked.field("log_prob", {-HUGE_VAL, -1.0, -HUGE_VAL, -HUGE_VAL})
      .field("old_log_prob", {-1.0, -HUGE_VAL, -1.0, -1.0})
      .field("advantage", {2.0, 2.0, 0.0, 2.0})
      .field("importance_weight", {1.0, 1.0, 1.0, 0.0})
      .gives("per_token", {HUGE_VAL, HUGE_VAL, HUGE_VAL, 0.0})
      .gives("gradient.log_prob", {-HUGE_VAL, HUGE_VAL, -HUGE_VAL, 0.0});
}

// ---- CISPO --------------------------------------------------------------------------------------

/// One token of log-prob -ln 2 with importance weight w and advantage A.
Worked reinforced(double w, double advantage) {
  Worked worked("cispo", {{Axis::sequences, 1}, {Axis::tokens, 1}});
  return worked.field("log_prob", {-kLn2})
      .field("old_log_prob", {-kLn2 - std::log(w)})
      .field("advantage", {advantage});
}

TEST(WorkedCispo, IsReinforceUnderAConstantWeight) {
  // w = 2, A = 3: -2 x 3 x -ln 2; the gradient is -2 x 3, not that of the weight besides.
  reinforced(2.0, 3.0).gives("loss", {6.0 * kLn2}).gives("gradient.log_prob", {-6.0});
}

TEST(WorkedCispo, BoundsTheWeightItselfOnBothSides) {
  reinforced(8.0, 1.0).gives("loss", {5.0 * kLn2}).gives("gradient.log_prob", {-5.0});
  reinforced(0.25, -1.0).with("weight_low", 0.5).gives("loss", {-0.5 * kLn2});
  reinforced(0.25, -1.0).gives("gradient.log_prob", {0.25});
}

// ---- SAPO ---------------------------------------------------------------------------------------

/// One token with importance weight w and advantage A.
Worked gated(double w, double advantage) {
  Worked worked("sapo", {{Axis::sequences, 1}, {Axis::tokens, 1}});
  return worked.field("log_prob", {std::log(w)}).field("advantage", {advantage});
}

TEST(WorkedSapo, IsThePolicyGradientOnPolicy) {
  // w = 1: sigmoid(0) = 1/2, so -A 2 / tau, and the gradient is -A whatever tau.
  gated(1.0, 3.0).gives("loss", {-6.0}).gives("gradient.log_prob", {-3.0});
  gated(1.0, 3.0)
      .with("tau_positive", 2.0)
      .gives("loss", {-3.0})
      .gives("gradient.log_prob", {-3.0});
  gated(1.0, -3.0).with("tau_negative", 2.0).gives("loss", {3.0}).gives("gradient.log_prob", {3.0});
}

TEST(WorkedSapo, ClosesItsGateOffPolicy) {
  // w = 1 + ln 3: sigmoid(ln 3) = 3/4, and 4 x 3/4 x 1/4 x w = 3/4 (1 + ln 3).
  gated(1.0 + kLn3, 1.0).gives("loss", {-3.0}).gives("gradient.log_prob", {-0.75 * (1.0 + kLn3)});
}

// ---- VESPO --------------------------------------------------------------------------------------

/// Two tokens of log-prob -1, of a sequence of weight exp(log_ratio), which is the first one's.
Worked weighed(double log_ratio, double advantage) {
  Worked worked("vespo", {{Axis::sequences, 1}, {Axis::tokens, 2}});
  return worked.field("log_prob", {-1.0, -1.0})
      .field("old_log_prob", {-1.0 - log_ratio, -1.0})
      .field("advantage", {advantage, advantage});
}

TEST(WorkedVespo, IsReinforceOnPolicy) {
  // w = 1: phi = exp(lambda - lambda) = 1 whatever k and lambda.
  for (const double lambda : {0.5, 3.0}) {
    weighed(0.0, 3.0)
        .with("lambda_positive", lambda)
        .gives("per_token", {3.0, 3.0})
        .gives("loss", {6.0})
        .gives("gradient.log_prob", {-3.0, -3.0});
  }
}

TEST(WorkedVespo, WeighsAllTokensByTheWeightOfTheirSequence) {
  // arXiv:2602.10693. Log-ratios ln 2 and 0, w = 2: phi = 2^2 exp(3 (1 - 2)) = 4 exp(-3).
  const double phi = 4.0 * std::exp(-3.0);
  weighed(kLn2, 1.0).gives("per_token", {phi, phi}).gives("gradient.log_prob", {-phi, -phi});
  // Where A < 0: 2^3 exp(2 (1 - 2)) = 8 exp(-2), times 5.
  const double other = 40.0 * std::exp(-2.0);
  weighed(kLn2, -5.0).gives("loss", {-2.0 * other}).gives("gradient.log_prob", {other, other});
}

TEST(WorkedVespo, TakesTheSignOfEachTokensAdvantage) {
  weighed(kLn2, 1.0)
      .field("advantage", {1.0, -1.0})
      .gives("gradient.log_prob", {-4.0 * std::exp(-3.0), 8.0 * std::exp(-2.0)});
}

TEST(WorkedVespo, HasAPowerAndADecayForEitherSign) {
  // w = 1/2: 1/2 exp(1/4) of k = 1 and lambda = 1/2, and exp(1) of k = 0 and lambda = 2.
  weighed(-kLn2, 1.0)
      .with("k_positive", 1.0)
      .with("lambda_positive", 0.5)
      .gives("gradient.log_prob", {-0.5 * std::exp(0.25)});
  weighed(-kLn2, -1.0).with("k_negative", 0.0).gives("gradient.log_prob", {std::exp(1.0)});
}

TEST(WorkedVespo, BoundsEachLogRatioAndThenTheirSum) {
  // Ratios of -30 and 25 are -20 and 20, which leave 0; without that, exp(-5).
  Worked opposite = weighed(-30.0, 1.0).field("old_log_prob", {29.0, -26.0});
  opposite.gives("gradient.log_prob", {-1.0});
  const double low = std::exp(-5.0);
  opposite.with("log_ratio_clamp", None{})
      .gives("gradient.log_prob", {-std::exp(-10.0) * std::exp(3.0 - 3.0 * low)});
  // The least w is 1e-8.
  weighed(-30.0, 1.0).gives("gradient.log_prob", {-1e-16 * std::exp(3.0 - 3e-8)});
  weighed(30.0, 1.0).gives("gradient.log_prob", {0.0}).gives("loss", {0.0});
}

// ---- GMPO ---------------------------------------------------------------------------------------

/// One sequence of log-ratios, each in the policy's log-prob, and one advantage.
Worked averaged(const std::vector<double>& log_ratios, double advantage) {
  const auto tokens = static_cast<std::int64_t>(log_ratios.size());
  Worked worked("gmpo", {{Axis::sequences, 1}, {Axis::tokens, tokens}});
  worked.field("log_prob", log_ratios);
  return worked.field("advantage", std::vector<double>(log_ratios.size(), advantage));
}

TEST(WorkedGmpo, IsThePolicyGradientOnPolicyOverTheLengthOfItsSequence) {
  averaged({0.0, 0.0}, 3.0)
      .gives("loss", {-3.0})
      .gives("per_sequence", {-3.0})
      .gives("gradient.log_prob", {-1.5, -1.5});
}

TEST(WorkedGmpo, WeighsASequenceByTheGeometricMeanOfItsWeights) {
  // arXiv:2507.20673 eq. 4. Weights of 1/2 and 8: the root of 4.
  averaged({-kLn2, 3.0 * kLn2}, -3.0)
      .with("clip_low", 1.0)
      .gives("loss", {6.0})
      .gives("gradient.log_prob", {3.0, 3.0});
}

TEST(WorkedGmpo, BoundsALogRatioOnTheSideThatItsAdvantageGainsFrom) {
  // (-1 + 1/4) / 2 and (-1/2 + 1) / 2; what is beyond the other side stays as it is.
  const double rewarded = std::exp(-0.375), punished = std::exp(0.25);
  averaged({-1.0, 1.0}, 2.0)
      .with("clip_low", 0.5)
      .with("clip_high", 0.25)
      .gives("loss", {-2.0 * rewarded})
      .gives("gradient.log_prob", {-rewarded, 0.0});
  averaged({-1.0, 1.0}, -2.0)
      .with("clip_low", 0.5)
      .with("clip_high", 0.25)
      .gives("loss", {2.0 * punished})
      .gives("gradient.log_prob", {0.0, punished});
}

TEST(WorkedGmpo, PassesTheGradientOnAtABound) {
  const double above = std::exp(0.25), below = std::exp(-0.5);
  averaged({0.25}, 1.0).with("clip_high", 0.25).gives("gradient.log_prob", {-above});
  averaged({-0.5}, -1.0).with("clip_low", 0.5).gives("gradient.log_prob", {below});
}

TEST(WorkedGmpo, LetsTheAdvantageOfEachTokenBoundIt) {
  // log-ratios of 1/4, -1/2 and, without an advantage, 0: a weight of exp(-1/12).
  Worked mixed("gmpo", {{Axis::sequences, 1}, {Axis::tokens, 3}});
  const double weight = std::exp(-0.25 / 3.0);
  mixed.with("clip_low", 0.5)
      .with("clip_high", 0.25)
      .field("log_prob", {1.0, -0.5, 2.0})
      .field("advantage", {3.0, -1.5, 0.0})
      .gives("loss", {-0.5 * weight})
      .gives("gradient.log_prob", {0.0, -weight / 6.0, 0.0});
}

TEST(WorkedGmpo, IsAMeanOfTheSequencesThatHaveAToken) {
  Worked three("gmpo", {{Axis::sequences, 3}, {Axis::tokens, 2}});
  three.field("advantage", {1.0, 1.0, 5.0, 9.0, 7.0, 7.0})
      .field("mask", {1.0, 1.0, 1.0, 0.0, 0.0, 0.0})
      .reduced(Reduction::sequence_mean)
      .gives("per_sequence", {-1.0, -5.0, 0.0})
      .gives("loss", {-3.0})
      .gives("gradient.log_prob", {-0.25, -0.25, -2.5, 0.0, 0.0, 0.0});
}

TEST(WorkedGmpo, OfAnImpossibleTokenIsNothingOrItsBound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  averaged({-infinity, 0.0}, 1.0).gives("loss", {0.0}).gives("gradient.log_prob", {0.0, 0.0});
  averaged({-infinity, 0.0}, -1.0)
      .with("clip_low", 0.5)
      .gives("loss", {std::exp(-0.25)})
      .gives("gradient.log_prob", {0.0, 0.5 * std::exp(-0.25)});
}

}  // namespace
}  // namespace lossgate::reference
