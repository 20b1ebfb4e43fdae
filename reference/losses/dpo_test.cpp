// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/dpo.h"

#include <gtest/gtest.h>

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

Answer answer_to(const Case& c, const std::string& form, Dtype compute = Dtype::f32) {
  struct Kept : Sink<Tracked> {
    std::vector<Tracked> entries;
    void entry(std::size_t, std::int64_t, const Tracked& value) override {
      entries.push_back(value);
    }
  } kept;
  const Loss& loss = *find_loss("dpo");
  evaluate(loss, Problem(loss.signature, c), plain_arithmetic(compute, form), kept);
  return {kept.entries.at(0), kept.entries.at(1), kept.entries.at(2)};
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

}  // namespace
}  // namespace lossgate::reference
