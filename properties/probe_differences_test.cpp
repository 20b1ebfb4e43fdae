// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// What the formula gives where the field is so many times as far from its twin, in a sequence with
/// so many tokens that count, of so many.
impl::Implementation with_distance(const std::string& loss, const std::string& field,
                                   std::function<double(double tokens, double positions)> times) {
  return answering(loss, [=](Case& c) {
    const std::int64_t columns = c.shape[Axis::tokens];
    std::vector<double> tokens(static_cast<std::size_t>(c.shape[Axis::sequences]), 0.0);
    at_positions(c, true,
                 [&](std::int64_t p) { tokens[static_cast<std::size_t>(p / columns)] += 1.0; });
    Tensor& tensor = c.batch.at(field);
    at_positions(c, true, [&](std::int64_t p) {
      const double twin = c.batch.at("log_prob").at(p);
      const double own = tokens[static_cast<std::size_t>(p / columns)];
      const double share = times(own, static_cast<double>(columns));
      tensor.set(p, twin + share * (tensor.at(p) - twin));
    });
  });
}

double exchanged(double, double) { return -1.0; }

Case kl_case(const std::string& estimator) {
  Case c = ordinary_case("kl_penalty");
  c.spec.set("kl_estimator", estimator);
  return c;
}

Case of_sequences() {
  Case c = ordinary_case("grpo");
  c.spec.set("level", std::string("sequence"));
  c.spec.set("kl_penalty", 0.0);
  c.spec.set("clip_low", 0.9);
  c.spec.set("clip_high", 4.0);  // what is clipped alike is no difference
  return c;
}

TEST(ProbeDifferences, NameTheEstimatorOfTheOtherDivergence) {
  const auto reversed = with_distance("kl_penalty", "ref_log_prob", exchanged);
  const char* because =
      "the answer is that with ref_log_prob and log_prob exchanged in their difference; what is "
      "linear in it, as k1, has the other sign";
  expect_shown(reversed, kl_case("k3"), "distributions exchanged", because);
  Case beside_policy = ordinary_case("grpo");
  beside_policy.spec.set("kl_penalty", 0.5);
  expect_shown(with_distance("grpo", "ref_log_prob", exchanged), beside_policy,
               "distributions exchanged", because);
}

TEST(ProbeDifferences, CallTheSignOfALinearEstimatorASign) {
  // Loss and gradient have the other sign, which says as much.
  const auto negated = answering("kl_penalty", nullptr, [](const Case& c, LossResult& result) {
    if (c.spec.choice("kl_estimator") != "k1") return;
    for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return -x; });
  });
  EXPECT_EQ(diagnosed(negated, kl_case("k1")).cause, "wrong sign");
}

TEST(ProbeDifferences, NameTheRatioOfTheOldPolicyToTheNewOne) {
  expect_shown(with_distance("cispo", "old_log_prob", exchanged), ordinary_case("cispo"),
               "distributions exchanged",
               "the answer is that with old_log_prob and log_prob exchanged in their difference; "
               "what is linear in it, as k1, has the other sign");
}

TEST(ProbeDifferences, NameThePaddingThatTheMeanOfASequenceCounts) {
  const auto padded = with_distance(
      "grpo", "old_log_prob", [](double tokens, double positions) { return tokens / positions; });
  expect_shown(padded, of_sequences(), "padding counted",
               "the answer is that with old_log_prob and log_prob less far apart, as the mean over "
               "a sequence is where masked positions count");
}

TEST(ProbeDifferences, NameTheMeanOfASequenceThatIsASum) {
  const auto sum =
      with_distance("grpo", "old_log_prob", [](double tokens, double) { return tokens; });
  expect_shown(sum, of_sequences(), "wrong divisor",
               "the answer is that with old_log_prob and log_prob farther apart, as where a "
               "sequence's differences are added up");
}

TEST(ProbeDifferences, SayNothingOfADifferenceThatIsAnotherMultiple) {
  const auto doubled =
      with_distance("kl_penalty", "ref_log_prob", [](double, double) { return 2.0; });
  EXPECT_EQ(diagnosed(doubled, kl_case("k3")).because, "");
}

TEST(ProbeDifferences, SayNothingOfWhatIsExchangedWhereLogProbsAreNearAlone) {
  const auto near_alone = answering("kl_penalty", [](Case& c) {
    Tensor& ref = c.batch.at("ref_log_prob");
    at_positions(c, true, [&](std::int64_t p) {
      const double twin = c.batch.at("log_prob").at(p), off = ref.at(p) - twin;
      ref.set(p, twin + (std::fabs(off) < 1.0 ? -1.0 : 1.5) * off);
    });
  });
  EXPECT_THAT(diagnosed(near_alone, kl_case("k3")).cause,
              testing::Not(testing::AnyOf("held", "distributions exchanged")));
}

TEST(ProbeDifferences, LeaveAnotherEstimatorToItsOption) {
  const auto other = answering("kl_penalty", [](Case& c) {
    if (c.spec.choice("kl_estimator") == "k3") c.spec.set("kl_estimator", std::string("k2"));
  });
  EXPECT_EQ(diagnosed(other, kl_case("k3")).cause, "option misread");
}

/// What the formula gives where each model is taken for the other one.
impl::Implementation with_models_exchanged() {
  return answering("jsd", [](Case& c) {
    std::swap(c.batch.at("student_logits"), c.batch.at("teacher_logits"));
  });
}

Case between_models(double beta) {
  Case c = ordinary_case("jsd");
  c.spec.set("beta", beta);
  return c;
}

TEST(ProbeDifferences, NameTheDivergenceTheOtherWayRound) {
  for (const double beta : {0.0, 1.0}) {
    expect_shown(with_models_exchanged(), between_models(beta), "distributions exchanged",
                 "the answer is that with both models exchanged");
  }
}

TEST(ProbeDifferences, LeaveAMixtureToTheOptionThatWeighsIt) {
  const auto turned = answering("jsd", [](Case& c) {
    if (c.spec.number("beta") == 0.25) c.spec.set("beta", 0.75);
  });
  EXPECT_EQ(diagnosed(turned, between_models(0.25)).cause, "option misread");
}

}  // namespace
}  // namespace lossgate::properties
