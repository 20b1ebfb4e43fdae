// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/given_worked.h"

namespace lossgate::reference {
namespace {

// ---- reductions ---------------------------------------------------------------------------------

/// NovaSky-AI/SkyRL#925: a sequence of 100 tokens at 0.5 and one of 900 at 0.3.
Worked worked_example(Reduction reduction) {
  std::vector<double> advantage(1800, -0.3), mask(1800, 1.0);
  for (std::size_t t = 0; t < 900; ++t) {
    advantage[t] = -0.5;
    mask[t] = t < 100;
  }
  return Worked("grpo", {{Axis::sequences, 2}, {Axis::tokens, 900}})
      .reduced(reduction)
      .with("kl_penalty", 0.0)
      .with("max_length", 1000.0)
      .field("advantage", advantage)
      .field("mask", mask);
}

TEST(WorkedReductions, TokenMeanIsNotTheMeanOfMeans) {
  worked_example(Reduction::token_mean)
      .gives("loss", {0.32})  // (50 + 270) / 1000
      .gives("gradient.log_prob", {0.5 / 1000.0});
  worked_example(Reduction::sequence_mean)
      .gives("loss", {0.40})  // (0.5 + 0.3) / 2
      .gives("gradient.log_prob", {0.5 / 200.0});
  worked_example(Reduction::seq_mean_token_sum_norm).gives("loss", {0.16});  // 320 / (2 x 1000)
  worked_example(Reduction::sum).gives("loss", {320.0});
}

TEST(WorkedReductions, AdvantagesCarryTheNormalisation) {
  Worked scaling("advantage_scaling", {{Axis::sequences, 3}, {Axis::tokens, 2}});
  scaling.field("advantage", {6.0, 6.0, 6.0, 6.0, 6.0, 6.0}).field("mask", {1, 1, 1, 0, 0, 0});
  scaling.reduced(Reduction::none);
  scaling.with("normalisation", "token_mean").gives("scaled_advantage", {2, 2, 2, 0, 0, 0});
  // Two sequences have a token: 6 / (2 x 2) and 6 / (2 x 1).
  scaling.with("normalisation", "sequence_mean").gives("scaled_advantage", {1.5, 1.5, 3, 0, 0, 0});
  scaling.with("normalisation", "seq_mean_token_sum_norm")
      .with("max_length", 4.0)
      .gives("scaled_advantage", {0.75, 0.75, 0.75, 0, 0, 0});
}

// ---- KL -----------------------------------------------------------------------------------------

/// One token with x = ref_log_prob - log_prob, clamps off.
Worked kl(const std::string& estimator, double x) {
  return Worked("kl_penalty", {{Axis::sequences, 1}, {Axis::tokens, 1}})
      .with("kl_estimator", estimator)
      .with("kl_input_clamp", None{})
      .with("kl_output_clamp", None{})
      .field("ref_log_prob", {x});
}

TEST(WorkedKl, EstimatorsAtLn2) {
  kl("k1", kLn2).gives("loss", {-kLn2}).gives("gradient.log_prob", {1.0});
  kl("k2", kLn2).gives("loss", {kLn2 * kLn2 / 2.0}).gives("gradient.log_prob", {-kLn2});
  kl("k3", kLn2).gives("loss", {1.0 - kLn2}).gives("gradient.log_prob", {-1.0});  // 2 - ln 2 - 1
  // x = -ln 2: 1/2 + ln 2 - 1, and 1 - 1/2.
  kl("k3", -kLn2).gives("loss", {kLn2 - 0.5}).gives("gradient.log_prob", {0.5});
}

TEST(WorkedKl, ClampsAsCalculateKlDoes) {
  // NVIDIA-NeMo/RL calculate_kl: input at 20, output at 10.
  const auto clamped = [](double x) {
    return kl("k3", x).with("kl_input_clamp", 20.0).with("kl_output_clamp", 10.0);
  };
  clamped(2.0)
      .gives("loss", {std::exp(2.0) - 3.0})
      .gives("gradient.log_prob", {1.0 - std::exp(2.0)});
  clamped(3.0).gives("loss", {10.0}).gives("gradient.log_prob", {0.0});  // e^3 - 4 = 16.1
  clamped(1000.0).gives("loss", {10.0}).gives("gradient.log_prob", {0.0});
  clamped(-5.0).gives("loss", {std::exp(-5.0) + 4.0});
  clamped(-1000.0).gives("loss", {10.0}).gives("gradient.log_prob", {0.0});
  // The input clamp alone: e^20 - 21, no gradient beyond it, all of it on the edge.
  const auto input = [](double x) { return kl("k3", x).with("kl_input_clamp", 20.0); };
  input(30.0).gives("loss", {std::exp(20.0) - 21.0}).gives("gradient.log_prob", {0.0});
  input(20.0).gives("gradient.log_prob", {1.0 - std::exp(20.0)});
  input(-20.0).gives("gradient.log_prob", {1.0 - std::exp(-20.0)});
}

TEST(WorkedKl, WeightsTheEstimate) {
  // w = 2, x = -1: k1 = 1; value w k1 = 2; d/dlog_prob = w k1 + w = 4.
  kl("k1", kLn2 - 1.0)
      .with("kl_weighted", 1.0)
      .field("log_prob", {kLn2})
      .gives("loss", {2.0})
      .gives("gradient.log_prob", {4.0});
}

TEST(WorkedKl, StraightThroughHasTheGradientOfK2) {
  // x = -1: k3 = e^-1 + 1 - 1; the gradient is log_prob - ref_log_prob = 1.
  kl("k3", -1.0)
      .with("kl_straight_through", 1.0)
      .gives("loss", {std::exp(-1.0)})
      .gives("gradient.log_prob", {1.0});
}

// ---- value --------------------------------------------------------------------------------------

Worked critic(double value, double target) {
  return Worked("value_clip", {{Axis::sequences, 1}, {Axis::tokens, 1}})
      .with("value_clip", 0.25)
      .field("value", {value})
      .field("return", {target});
}

TEST(WorkedValueClip, TakesTheLargerSquare) {
  for (const char* form : {"around_old", "interval"}) {
    // old = 0. V = 1, R = 2: clip(V) = 1/4; max(1, (7/4)^2) / 2 = 49/32, from the clipped side.
    critic(1.0, 2.0)
        .with("clip_form", form)
        .gives("loss", {49.0 / 32.0})
        .gives("gradient.value", {0.0});
    // V = 1, R = 0: max(1, 1/16) / 2, gradient V - R.
    critic(1.0, 0.0).with("clip_form", form).gives("loss", {0.5}).gives("gradient.value", {1.0});
    // Inside the range both are one function.
    critic(0.125, 1.0)
        .with("clip_form", form)
        .gives("loss", {49.0 / 128.0})
        .gives("gradient.value", {-0.875});
    // On its edge as well, where clamp passes the gradient.
    critic(0.25, 1.0).with("clip_form", form).gives("gradient.value", {-0.75});
    // V = 5/4, R = 3/4: d = 1/2 and clip(V) - R = -1/2 tie; each side of max gets half.
    critic(1.25, 0.75)
        .with("clip_form", form)
        .gives("loss", {0.125})
        .gives("gradient.value", {0.25});
  }
  critic(1.0, 2.0).with("value_clip", None{}).gives("loss", {0.5}).gives("gradient.value", {-1.0});
}

// ---- divergences --------------------------------------------------------------------------------

TEST(WorkedLogProb, OfTwoTokens) {
  // logits (0, ln 3): p = (1/4, 3/4); H = ln 4 / 4 + 3/4 ln(4/3).
  const double entropy = std::log(4.0) / 4.0 + 0.75 * std::log(4.0 / 3.0);
  Worked worked("log_prob", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}});
  worked.field("logits", {0.0, kLn3}).field("label", {1.0});
  worked.field("log_prob_weight", {1.0})
      .gives("log_prob", {std::log(0.75)})
      .gives("entropy", {entropy})
      .gives("gradient.logits", {-0.25, 0.25});  // delta - p
  // Of the entropy: -p (log p + H).
  worked.field("log_prob_weight", {0.0})
      .field("entropy_weight", {1.0})
      .gives("loss", {entropy})
      .gives("gradient.logits",
             {-0.25 * (std::log(0.25) + entropy), -0.75 * (std::log(0.75) + entropy)});
  // Temperature 1/2 doubles the logits, p = (1/10, 9/10), and the gradient.
  worked.with("temperature", 0.5)
      .field("log_prob_weight", {1.0})
      .field("entropy_weight", {0.0})
      .gives("log_prob", {std::log(0.9)})
      .gives("gradient.logits", {-0.2, 0.2});
}

TEST(WorkedJsd, OfTwoTokens) {
  // p = (1/2, 1/2) and q = (3/4, 1/4).
  Worked worked("jsd", {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}});
  worked.field("teacher_logits", {kLn3, 0.0});
  // beta = 0: 3/4 ln(3/2) + 1/4 ln(1/2); gradient p - q.
  worked.with("beta", 0.0)
      .gives("loss", {0.75 * std::log(1.5) + 0.25 * std::log(0.5)})
      .gives("gradient.student_logits", {-0.25, 0.25});
  // Without the teacher's entropy: 3/4 ln 2 + 1/4 ln 2; the same gradient.
  worked.with("soft_cross_entropy", 1.0)
      .gives("loss", {kLn2})
      .gives("gradient.student_logits", {-0.25, 0.25});
  // beta = 1, where nothing is left out: 1/2 ln(2/3) + 1/2 ln 2 = ln(4/3) / 2; gradient p (log p/q
  // - KL) = -+ ln 3 / 4.
  worked.with("beta", 1.0)
      .gives("loss", {std::log(4.0 / 3.0) / 2.0})
      .gives("gradient.student_logits", {-kLn3 / 4.0, kLn3 / 4.0});
  // beta = 1/2: m = (5/8, 3/8); with a = log(p/m): (1 - beta) p (a - sum p a) = -+ ln(5/3) / 8.
  worked.with("beta", 0.5)
      .gives("loss", {0.5 * (0.75 * std::log(1.2) + 0.25 * std::log(2.0 / 3.0)) +
                      0.25 * (std::log(0.8) + std::log(4.0 / 3.0))})
      .gives("gradient.student_logits", {-std::log(5.0 / 3.0) / 8.0, std::log(5.0 / 3.0) / 8.0});
  // The mixture is beta q + (1 - beta) p: m = (9/16, 7/16) at beta = 1/4. The terms cancel, so they
  // are added up in long double.
  const Real from_teacher = 0.75L * std::log(4.0L / 3.0L) + 0.25L * std::log(4.0L / 7.0L),
             from_student = 0.5L * std::log(8.0L / 9.0L) + 0.5L * std::log(8.0L / 7.0L);
  worked.with("beta", 0.25)
      .gives("loss", {static_cast<double>(0.25L * from_teacher + 0.75L * from_student)});
}

TEST(WorkedSparseJsd, ReverseKlWithATail) {
  // huggingface/trl#5594, beta = 1. p = (1/2, 1/2), support {0} with q_0 = 1/4, tails 1/2 and 3/4:
  // 1/2 ln 2 + 1/2 ln(2/3) = ln(4/3) / 2; d/dp_0 = ln 2 - ln(2/3) = ln 3, times p_0 p_1 = 1/4.
  Worked worked("sparse_jsd",
                {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::support, 1}});
  worked.with("beta", 1.0)
      .field("teacher_log_prob", {std::log(0.25)})
      .gives("loss", {std::log(4.0 / 3.0) / 2.0})
      .gives("gradient.student_logits", {kLn3 / 4.0, -kLn3 / 4.0});
  // Renormalised without the tail, one token is the whole distribution.
  worked.with("tail", 0.0).gives("loss", {0.0}).gives("gradient.student_logits", {0.0, 0.0});
}

TEST(WorkedSparseJsd, ARepeatedSlotIsOff) {
  Worked worked("sparse_jsd",
                {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::support, 2}});
  worked.with("beta", 1.0)
      .field("teacher_log_prob", {std::log(0.25), std::log(0.25)})
      .gives("loss", {std::log(4.0 / 3.0) / 2.0});
}

// ---- fused output layers ------------------------------------------------------------------------

TEST(WorkedLinearGrpo, SendsTheGradientThroughTheLayer) {
  // hidden 1, weight (0, ln 3): p = (1/4, 3/4), label 1, on-policy, A = 1: -1 by log-prob, so
  // (1/4, -1/4) by logit, -ln 3 / 4 by hidden state.
  Worked("linear_grpo",
         {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::hidden, 1}})
      .with("kl_penalty", 0.0)
      .field("hidden", {1.0})
      .field("weight", {0.0, kLn3})
      .field("label", {1.0})
      .field("old_log_prob", {std::log(0.75)})
      .field("advantage", {1.0})
      .gives("loss", {-1.0})
      .gives("gradient.bias", {0.25, -0.25})
      .gives("gradient.weight", {0.25, -0.25})
      .gives("gradient.hidden", {-kLn3 / 4.0});
}

TEST(WorkedLinearGrpo, DividesLogitsAndGradientsByTheTemperature) {
  // As above at T = 2: logits (0, 2 ln 3) give the same p, and gradients are halved.
  Worked("linear_grpo",
         {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::hidden, 1}})
      .with("kl_penalty", 0.0)
      .with("temperature", 2.0)
      .field("hidden", {1.0})
      .field("weight", {0.0, 2.0 * kLn3})
      .field("label", {1.0})
      .field("old_log_prob", {std::log(0.75)})
      .field("advantage", {1.0})
      .gives("loss", {-1.0})
      .gives("gradient.bias", {0.125, -0.125})
      .gives("gradient.weight", {0.125, -0.125})
      .gives("gradient.hidden", {-kLn3 / 4.0});
}

TEST(WorkedGrpo, AddsTheWholeKlAtAPenaltyOfOne) {
  // On-policy, A = 0, x = ln 2: k3 = 2 - ln 2 - 1, its slope 1 - 2.
  Worked("grpo", {{Axis::sequences, 1}, {Axis::tokens, 1}})
      .with("kl_penalty", 1.0)
      .field("ref_log_prob", {kLn2})
      .gives("loss", {1.0 - kLn2})
      .gives("gradient.log_prob", {-1.0});
}

TEST(WorkedLinearCrossEntropy, SendsTheGradientThroughTheLayer) {
  // Logits 2 (0, ln 3 / 2) + (0, 0): p = (1/4, 3/4); the taken token is the first.
  Worked worked("linear_cross_entropy",
                {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::hidden, 1}});
  worked.field("hidden", {2.0}).field("weight", {0.0, kLn3 / 2.0}).field("label", {0.0});
  worked.gives("loss", {2.0 * kLn2})
      .gives("gradient.bias", {-0.75, 0.75})
      .gives("gradient.weight", {-1.5, 1.5})
      .gives("gradient.hidden", {0.375 * kLn3});
  // A bias of ln 3 makes both as likely.
  worked.field("bias", {kLn3, 0.0}).gives("loss", {kLn2}).gives("gradient.bias", {-0.5, 0.5});
  // z = 1/4 of (ln 6)^2, smoothing a half: -(3/4) ln p[0] - (1/4) ln p[1].
  const double z = std::log(6.0);
  worked.with("z_loss", 0.25)
      .with("label_smoothing", 0.5)
      .gives("loss", {kLn2 + 0.25 * z * z})
      .gives("gradient.bias", {0.5 * (1.0 + 0.5 * z) - 0.75, 0.5 * (1.0 + 0.5 * z) - 0.25});
}

TEST(WorkedLinearJsd, SendsTheGradientThroughTheLayer) {
  // Student (1/2, 1/2), teacher (3/4, 1/4), beta = 0; hidden 2 doubles the weight gradient.
  Worked("linear_jsd",
         {{Axis::sequences, 1}, {Axis::tokens, 1}, {Axis::vocab, 2}, {Axis::hidden, 1}})
      .with("beta", 0.0)
      .field("student_hidden", {2.0})
      .field("student_weight", {1.0, 1.0})
      .field("teacher_hidden", {1.0})
      .field("teacher_weight", {kLn3, 0.0})
      .gives("loss", {0.75 * std::log(1.5) + 0.25 * std::log(0.5)})
      .gives("gradient.student_weight", {-0.5, 0.5})
      .gives("gradient.student_hidden", {0.0});
}

}  // namespace
}  // namespace lossgate::reference
