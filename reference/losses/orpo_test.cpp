// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/orpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

constexpr const char *kByExpm1 = "log(-expm1(x))", *kByExp = "log1p(-exp(x))", *kAny = "";

/// One pair of f32 log-probs.
Case pair_of(double chosen, double rejected) {
  Case one = zero_case(*find_signature("orpo"), 1, -1);
  one.spec.reduction = Reduction::sum;
  one.spec.set("beta", 1.0);
  one.batch.at("chosen_log_prob").set(0, chosen);
  one.batch.at("rejected_log_prob").set(0, rejected);
  return one;
}

/// The first pair's term and its gradients, and the loss.
struct Answer {
  Tracked value, by_chosen, by_rejected, loss;
};

Answer answer_to(const Case& c, const Arithmetic& arithmetic) {
  struct Kept : Sink<Tracked> {
    std::vector<Tracked> entries;
    void entry(std::size_t, std::int64_t, const Tracked& value) override {
      entries.push_back(value);
    }
  } kept;
  const Loss& loss = *find_loss("orpo");
  evaluate(loss, Problem(loss.signature, c), arithmetic, kept);
  return {kept.entries.at(0), kept.entries.at(1), kept.entries.at(2), kept.entries.back()};
}

Answer answer_to(const Case& c, const std::string& form, Dtype compute = Dtype::f32) {
  return answer_to(c, plain_arithmetic(compute, form));
}

double relative_error(const Tracked& x) { return x.err / std::fabs(static_cast<double>(x.v)); }

TEST(Orpo, KeepsItsDigitsOfANearlyCertainAnswerInTheStableForm) {
  // exp(-1e-4) in f32 has 1e-4 to three digits.
  const Case near = pair_of(-1e-4, -2.0);
  for (const auto& [form, least, most] :
       {std::tuple(kByExpm1, 0.0, 1e-5), std::tuple(kByExp, 1e-4, 1e-2),
        std::tuple(kAny, 1e-4, 0.5)}) {
    const Answer answer = answer_to(near, form);
    for (const Tracked& x : {answer.value, answer.by_chosen, answer.by_rejected}) {
      EXPECT_GT(relative_error(x), least) << form;
      EXPECT_LT(relative_error(x), most) << form;
    }
  }
}

TEST(Orpo, IsBoundedByItsStableFormAloneWhereAProbabilityRoundsToOne) {
  // exp(-1e-8) is 1 in f32, and 1 - 1 has no logarithm.
  for (const auto& c : {pair_of(-1e-8, -2.0), pair_of(-2.0, -1e-8)}) {
    const Answer stable = answer_to(c, kByExpm1);
    for (const Tracked& x : {stable.value, stable.by_chosen, stable.by_rejected}) {
      EXPECT_LT(relative_error(x), 1e-5);
      EXPECT_LT(x.peak, max_finite(Dtype::f32));
    }
    for (const char* form : {kByExp, kAny}) {
      EXPECT_EQ(answer_to(c, form).value.err, tracking::kInfinity) << form;
    }
  }
}

TEST(Orpo, HasSlopesOfACertainAnswerInAnyForm) {
  const double odds = std::exp(-2.0) / -std::expm1(-2.0);
  for (const char* form : {kByExpm1, kByExp, kAny}) {
    const Answer certain = answer_to(pair_of(0.0, -2.0), form);
    EXPECT_EQ(certain.value.v, 0.0L) << form;
    EXPECT_LT(certain.value.err, 1e-43) << form;
    EXPECT_NEAR(static_cast<double>(certain.by_chosen.v), -odds, 1e-8) << form;
    EXPECT_LT(relative_error(certain.by_chosen), 1e-6) << form;
    EXPECT_EQ(certain.by_rejected.v, 0.0L) << form;
    EXPECT_LT(certain.by_rejected.err, 1e-40) << form;
  }
}

TEST(Orpo, SaysNothingOfARejectedAnswerThatIsCertain) {
  for (const char* form : {kByExpm1, kByExp, kAny}) {
    const Answer certain = answer_to(pair_of(-2.0, 0.0), form);
    for (const Tracked& x : {certain.value, certain.by_chosen, certain.by_rejected}) {
      EXPECT_EQ(x.err, tracking::kInfinity) << form;
    }
    EXPECT_TRUE(is_nan(answer_to(pair_of(0.0, 0.0), form).value)) << form;
  }
}

TEST(Orpo, MayAddUpItsLogOddsInAnyOrderWhereNoFormIsDeclared) {
  // c - log(1 - exp(c)) rounds at 1000, c - r at 1/4.
  const Case far = pair_of(-1000.25, -1000.0);
  const double u = unit_roundoff(Dtype::f32);
  for (const char* form : {kByExpm1, kByExp}) EXPECT_LT(answer_to(far, form).value.err, 20.0 * u);
  EXPECT_GT(answer_to(far, kAny).value.err, 500.0 * u);
}

TEST(Orpo, MayBeASoftmaxOfTwoClassesWhereNoFormIsDeclared) {
  // A loss of 1e-5: log(1 + 1e-5) rounds at 1, and so does 1 - sigmoid(h).
  const Case likely = pair_of(-0.5, -11.0);
  const double u = unit_roundoff(Dtype::f32);
  EXPECT_LT(answer_to(likely, kByExpm1).value.err, 1e-3 * u);
  EXPECT_GT(answer_to(likely, kAny).value.err, u);
  EXPECT_GT(answer_to(likely, kAny).by_chosen.err, u);
}

TEST(Orpo, MayMultiplyTheSumOfItsTermsByBetaLast) {
  // Each costs 2e38, a tenth of which counts: the sum of both leaves f32 before beta comes.
  Case two = zero_case(*find_signature("orpo"), 2, -1);
  two.spec.reduction = Reduction::sum;
  two.spec.set("beta", 0.1);
  for (std::int64_t s = 0; s < 2; ++s) {
    two.batch.at("chosen_log_prob").set(s, -2e38);
    two.batch.at("rejected_log_prob").set(s, -1.0);
  }
  const Answer answer = answer_to(two, kByExpm1);
  EXPECT_LT(answer.value.peak, max_finite(Dtype::f32));
  EXPECT_GT(answer.loss.peak, max_finite(Dtype::f32));
  EXPECT_LT(relative_error(answer.loss), 1e-5);
}

TEST(Orpo, MayStoreItsTermBeforeBetaComes) {
  // Ten times 2.6e-8, of which f16 has half of its smallest number.
  Case small = pair_of(-1.0, -18.0);
  small.spec.set("beta", 10.0);
  Arithmetic stored = plain_arithmetic(Dtype::f32, kByExpm1);
  stored.stage(Stage::per_token) = {unit_roundoff(Dtype::f16), min_subnormal(Dtype::f16),
                                    max_finite(Dtype::f16)};
  EXPECT_GT(answer_to(small, stored).value.err, 10.0 * min_subnormal(Dtype::f16));
}

}  // namespace
}  // namespace lossgate::reference
