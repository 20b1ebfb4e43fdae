// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/dpo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

constexpr const char* kApart = "(c - r) - (ref_c - ref_r) with e sigmoid(h) - (1 - e) sigmoid(-h)";
constexpr const char* kTogether = "(c - r) - (ref_c - ref_r) with sigmoid(h) - (1 - e)";
constexpr const char* kByAnswer =
    "(c - ref_c) - (r - ref_r) with e sigmoid(h) - (1 - e) sigmoid(-h)";

/// One pair of f32 log-probs.
Case pair_of(double c, double r, double ref_c, double ref_r) {
  Case one = zero_case(*find_signature("dpo"), 1, -1);
  one.spec.reduction = Reduction::sum;
  one.spec.set("beta", 1.0);
  one.batch.at("chosen_log_prob").set(0, c);
  one.batch.at("rejected_log_prob").set(0, r);
  one.batch.at("ref_chosen_log_prob").set(0, ref_c);
  one.batch.at("ref_rejected_log_prob").set(0, ref_r);
  return one;
}

/// The pair's term and its gradients.
struct Answer {
  Tracked value, by_chosen, by_rejected;
};

std::vector<Tracked> entries_of(const Loss& loss, const Case& c, const Arithmetic& arithmetic) {
  struct Kept : Sink<Tracked> {
    std::vector<Tracked> entries;
    void entry(std::size_t, std::int64_t, const Tracked& value) override {
      entries.push_back(value);
    }
  } kept;
  evaluate(loss, Problem(loss.signature, c), arithmetic, kept);
  return kept.entries;
}

Answer answer_to(const Case& c, const Arithmetic& arithmetic) {
  const auto entries = entries_of(*find_loss("dpo"), c, arithmetic);
  return {entries.at(0), entries.at(1), entries.at(2)};
}

Answer answer_to(const Case& c, const std::string& form, Dtype compute = Dtype::f32) {
  return answer_to(c, plain_arithmetic(compute, form));
}

TEST(Dpo, IsAsExactAsTheDifferencesThatItIsMadeOf) {
  // Answers that are far apart and were so before, and answers that moved together.
  const Case apart = pair_of(-1000.0, -10.0, -1000.25, -9.75),
             together = pair_of(-1000.0, -1000.5, -10.0, -10.25);
  const double u = unit_roundoff(Dtype::f32);
  EXPECT_GT(answer_to(apart, kApart).value.err, 500.0 * u);
  EXPECT_LT(answer_to(apart, kByAnswer).value.err, 10.0 * u);
  EXPECT_LT(answer_to(together, kApart).value.err, 10.0 * u);
  EXPECT_GT(answer_to(together, kByAnswer).value.err, 500.0 * u);
  for (const Case& c : {apart, together}) EXPECT_GT(answer_to(c, "").value.err, 500.0 * u);
}

TEST(Dpo, MayTakeItsReferencesOneByOneWhereNoFormIsDeclared) {
  // Neither form makes more than 1/4 of these log-probs; ((c - r) - ref_c) + ref_r makes 1000.
  const Case near = pair_of(-1000.25, -1000.0, -1000.0, -999.75);
  const double u = unit_roundoff(Dtype::f32);
  for (const char* form : {kApart, kByAnswer}) EXPECT_LT(answer_to(near, form).value.err, 10.0 * u);
  EXPECT_GT(answer_to(near, "").value.err, 500.0 * u);
}

TEST(Dpo, MayMeetItsConstantFirstWhereNoFormIsDeclared) {
  // 1 - c + r, as SLiC is written, and c - (r + 1 / (2 beta)) round at 1000; c - r at 1/4.
  Case near = pair_of(-1000.25, -1000.0, 0.0, 0.0);
  near.spec.set("beta", 1.0);
  const double u = unit_roundoff(Dtype::f32);
  for (const std::string kind : {"hinge", "ipo"}) {
    near.spec.set("loss_type", kind);
    EXPECT_LT(answer_to(near, kApart).value.err, 10.0 * u) << kind;
    EXPECT_GT(answer_to(near, "").value.err, 500.0 * u) << kind;
  }
}

TEST(Dpo, MayMeetItsMarginFirstWhereNoFormIsDeclared) {
  // c - 1/2 rounds at 1000, and so does r + 1/2; c - r rounds at 1/4.
  Case near = pair_of(-1000.25, -1000.0, 0.0, 0.0);
  const double u = unit_roundoff(Dtype::f32);
  const double last = answer_to(near, "").value.err;
  near.spec.set("margin", 0.5);
  for (const char* form : {kApart, kByAnswer}) EXPECT_LT(answer_to(near, form).value.err, 20.0 * u);
  EXPECT_GT(answer_to(near, "").value.err, last + 500.0 * u);
}

TEST(Dpo, MayTakeItsMarginOffBeforeBetaInAnyForm) {
  // -60 - 10 is any format's, -60000 - 10000 is not f16's.
  Case far = pair_of(-60000.0, 0.0, 0.0, 0.0);
  far.spec.set("beta", 0.001);
  for (const char* form : {"", kApart, kByAnswer}) {
    far.spec.set("margin", 0.0);
    EXPECT_LT(answer_to(far, form, Dtype::f16).value.peak, max_finite(Dtype::f16)) << form;
    far.spec.set("margin", 10.0);
    EXPECT_GT(answer_to(far, form, Dtype::f16).value.peak, max_finite(Dtype::f16)) << form;
  }
}

TEST(Dpo, MayBeOfTwoRewardsThatOverflowWhereNoFormIsDeclared) {
  // Ten times 8e37 is no number in f32, ten times what is left of their difference is.
  Case far = pair_of(-7e37, 0.0, -15e37, -7e37);
  far.spec.set("beta", 10.0);
  EXPECT_TRUE(tracking::undefined(answer_to(far, "").by_chosen));
  EXPECT_FALSE(tracking::undefined(answer_to(far, kApart).by_chosen));
  far.spec.set("beta", 1.0);
  EXPECT_FALSE(tracking::undefined(answer_to(far, "").by_chosen));
  // Where one reward overflows, their difference does, and a softmax of infinity and 0 is no
  // number.
  Case one = pair_of(0.0, -35e36, 0.0, 0.0);
  one.spec.set("beta", 10.0);
  EXPECT_FALSE(tracking::undefined(answer_to(one, kApart).by_chosen));
  one.batch.at("ref_chosen_log_prob").set(0, 7e36);
  EXPECT_TRUE(tracking::undefined(answer_to(one, "").by_chosen));
  EXPECT_TRUE(tracking::undefined(answer_to(one, "").value));
  // Each log-prob alone is no number when it is scaled, all their differences are.
  Case near = pair_of(-5e37, -5e37, -49e36, -5e37);
  near.spec.set("beta", 10.0);
  EXPECT_TRUE(tracking::undefined(answer_to(near, "").by_chosen));
  EXPECT_FALSE(tracking::undefined(answer_to(near, kApart).by_chosen));
}

TEST(Dpo, LosesADerivativeThatIsADifferenceOfOnes) {
  const Case far = pair_of(-10.0, -30.0, -10.0, -10.0);
  const double size = std::exp(-20.0);
  const Tracked apart = answer_to(far, kApart).by_chosen,
                together = answer_to(far, kTogether).by_chosen;
  EXPECT_NEAR(static_cast<double>(apart.v), -size, 1e-6 * size);
  EXPECT_LT(kThreshold * apart.err, 1e-3 * size);
  EXPECT_GT(kThreshold * together.err, size) << "0 is as right";
  EXPECT_GT(kThreshold * answer_to(far, "").by_chosen.err, size);
}

TEST(Dpo, TurnsTheGradientRoundForTheRejectedAnswer) {
  for (const std::string kind : {"sigmoid", "hinge", "ipo"}) {
    Case c = pair_of(-10.0, -10.5, -10.0, -10.25);
    c.spec.set("loss_type", kind);
    const Answer answer = answer_to(c, kApart);
    EXPECT_EQ(answer.by_chosen.v, -answer.by_rejected.v) << kind;
    EXPECT_LT(answer.by_chosen.v, 0.0L) << kind;
  }
}

TEST(Dpo, MayPassAnythingAtACornerThatRoundingDecides) {
  Case c = pair_of(-1000.0, -1000.5, -10.25, -9.75);  // D is 1
  c.spec.set("loss_type", std::string("hinge"));
  const Tracked open = answer_to(c, kByAnswer).by_chosen;
  EXPECT_EQ(std::fabs(open.v), open.half) << "from none to all of it";
  const Tracked decided = answer_to(pair_of(-2.0, -5.0, 0.0, 0.0), kApart).by_chosen;
  EXPECT_EQ(decided.half, 0.0);
}

TEST(Dpo, SilencesNoLabelNoiseThatOverflows) {
  // In f16 beta D is infinite: a share of 0 of an infinite term may be NaN, as in f32 it may not.
  Case c = pair_of(-10.0, -60000.0, -60000.0, -10.0);
  c.spec.set("beta", 10.0);
  EXPECT_GT(answer_to(c, kApart, Dtype::f16).value.peak, max_finite(Dtype::f16));
  EXPECT_LT(answer_to(c, kApart, Dtype::f32).value.peak, max_finite(Dtype::f32));
}

TEST(Dpo, MayBeASoftmaxOfTwoClassesOrACrossEntropyWhereNoFormIsDeclared) {
  const double u = unit_roundoff(Dtype::f32);
  const Case likely = pair_of(-10.0, -16.65, -10.0, -10.0);  // a loss of 1e-3, at a D of 6.65
  EXPECT_LT(answer_to(likely, kApart).value.err, 0.05 * u);
  EXPECT_GT(answer_to(likely, "").value.err, u) << "log(1 + 1e-3) rounds at 1";
  Case smoothed = pair_of(-10.0, -14.0, -10.0, -10.0);
  smoothed.spec.set("label_smoothing", 2.17464e-7);
  EXPECT_LT(answer_to(smoothed, kApart).value.err, 0.5 * u);
  EXPECT_GT(answer_to(smoothed, kTogether).value.err, 2.0 * u) << "4 times what is off in 1 - e";
}

TEST(Dpo, MayBeALogProbLessItsNormaliserWhereNoFormIsDeclared) {
  // logaddexp(c, r) - c and exp(r - logaddexp(c, r)) in f32, of what a reward model gives.
  const auto normaliser = [](float c, float r) {
    return std::max(c, r) + std::log1p(std::exp(-std::fabs(c - r)));
  };
  const auto is_open_alone = [](float actual, const Tracked& open, const Tracked& declared) {
    const auto off = std::fabs(static_cast<double>(actual - open.v));
    EXPECT_GT(off, kThreshold * declared.err);
    EXPECT_LE(off, open.err);
  };
  const Case near = pair_of(-4.1, -7.42, 0.0, 0.0), far = pair_of(-130.0, -128.0, 0.0, 0.0);
  is_open_alone(normaliser(-4.1F, -7.42F) + 4.1F, answer_to(near, "").value,
                answer_to(near, kApart).value);
  is_open_alone(-std::exp(-128.0F - normaliser(-130.0F, -128.0F)), answer_to(far, "").by_chosen,
                answer_to(far, kApart).by_chosen);
  // exp(-h - logsumexp(0, -h)) in f64, whose normaliser is as large as h.
  const Answer sure = answer_to(pair_of(-17.5375755, 0.0, 0.0, 0.0), "", Dtype::f64);
  EXPECT_GT(sure.by_chosen.err, 2.0 * 17.5 * unit_roundoff(Dtype::f64));
}

TEST(Dpo, MayBeASoftplusThatIsLinearFarOutInAnyForm) {
  const double of_value = std::log1p(std::exp(-21.0)), of_slope = 1.0 / (1.0 + std::exp(21.0));
  for (const char* form : {"", kApart, kByAnswer}) {
    const Answer far = answer_to(pair_of(-21.0, 0.0, 0.0, 0.0), form, Dtype::f64);
    EXPECT_LE(of_value, kThreshold * far.value.err) << form;
    EXPECT_LE(of_slope, kThreshold * far.by_chosen.err) << form;
    const Answer near = answer_to(pair_of(-19.0, 0.0, 0.0, 0.0), form, Dtype::f64);
    EXPECT_LT(near.value.err, std::exp(-21.0)) << form;
  }
}

TEST(Dpo, AddsUpTermsAsTheyAreStored) {
  const Case c = pair_of(-10.0, -10.5, -10.0, -10.25);
  const Loss& loss = *find_loss("dpo");
  Arithmetic stored = plain_arithmetic(Dtype::f32, kApart);
  stored.stage(Stage::per_token) = {unit_roundoff(Dtype::bf16), min_subnormal(Dtype::bf16)};
  const auto plain = entries_of(loss, c, plain_arithmetic(Dtype::f32, kApart));
  const auto coarse = entries_of(loss, c, stored);
  const double u = unit_roundoff(Dtype::bf16);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double size = std::fabs(static_cast<double>(plain[i].v));
    EXPECT_LT(plain[i].err, 0.1 * u * size) << i;
    EXPECT_GT(coarse[i].err, u * size) << i << ": terms, loss and both gradients";
    EXPECT_LT(coarse[i].err, 2.0 * u * size) << i;
  }
}

TEST(Dpo, IsMadeOfLogRatiosAsTheyAreStoredAndSoIsWhatComesBackToThem) {
  const double u = unit_roundoff(Dtype::bf16), slope = 0.5;  // by a D of 1/4, below by that much
  Case c = pair_of(-9.0, -5.0, -9.5, -5.25);
  c.spec.set("loss_type", std::string("ipo"));
  const auto answer_in = [&](const std::string& form) {
    Arithmetic stored = plain_arithmetic(Dtype::f32, form);
    stored.stage(Stage::log_prob) = {u, min_subnormal(Dtype::bf16)};
    return answer_to(c, stored);
  };
  const Answer any = answer_in("");
  for (const auto& [form, sizes] :
       {std::pair(kApart, 4.0 + 4.25), std::pair(kByAnswer, 0.5 + 0.25)}) {
    const Answer answer = answer_in(form);
    EXPECT_GE(answer.value.err, slope * sizes * u) << form;
    EXPECT_LT(answer.value.err, 1.2 * slope * sizes * u) << form;
    for (const Tracked& by : {answer.by_chosen, answer.by_rejected}) {
      EXPECT_NEAR(by.err, (2.0 * sizes + slope) * u, 0.01 * u) << form;
    }
    EXPECT_GE(any.value.err, answer.value.err) << form;
    EXPECT_GE(any.by_chosen.err, answer.by_chosen.err) << form;
  }
}

}  // namespace
}  // namespace lossgate::reference
