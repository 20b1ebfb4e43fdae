// SPDX-License-Identifier: Apache-2.0
// Options that are read otherwise: whatever an option was taken for is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "impl/catalog.h"
#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

struct Misread {
  const char* loss;
  const char* option;
  OptionValue given, taken;
};

TEST(ProbeOptions, FindsWhatAnOptionWasTakenFor) {
  const Misread all[] = {
      {"grpo", "kl_penalty", 0.3, 0.04},       // the standard
      {"grpo", "kl_penalty", 0.3, 0.0},        // left out
      {"grpo", "kl_penalty", 0.3, 1.0},        // left out as a factor
      {"grpo", "kl_penalty", 0.3, 0.3 * 0.3},  // applied twice
      {"grpo", "kl_penalty", 0.3, 1.0 - 0.3},  // its complement
      {"grpo", "kl_penalty", 0.3, 0.2},        // another option
      {"grpo", "kl_estimator", "k3", "k2"},    // another choice
      {"grpo", "kl_weighted", 1.0, 0.0},       // off
      {"grpo", "kl_weighted", 0.0, 1.0},       // on
      {"jsd", "temperature", 3.0, 1.0},        // left out
      {"jsd", "temperature", 4.0, 0.25},       // its inverse
      {"jsd", "beta", 0.25, 0.75},             // turned round
      {"dpo", "beta", 0.4, 0.2},               // 2 left out of the formula
      {"dpo", "beta", 0.4, 0.8},               // or one too many
  };
  for (const Misread& misread : all) {
    Case c = ordinary_case(misread.loss);
    if (c.spec.find("kl_penalty")) c.spec.set("kl_penalty", 0.3);
    c.spec.set(misread.option, misread.given);
    const auto fake = answering(misread.loss, [&](Case& x) {
      if (*x.spec.find(misread.option) == misread.given) x.spec.set(misread.option, misread.taken);
    });
    const Diagnosis diagnosis = diagnosed(fake, c);
    EXPECT_EQ(diagnosis.cause, "option misread") << misread.option;
    EXPECT_EQ(diagnosis.because,
              "the answer is that of another value of " + std::string(misread.option));
  }
}

TEST(ProbeOptions, FindsWhatAPinnedOptionWasTakenFor) {
  reference::Loss pinned = *reference::find_loss("dpo");
  for (Option& option : pinned.signature.options) {
    if (option.name == "loss_type") option.choices = {"ipo"};
    if (option.name == "beta") option.low = option.high = 0.4;
  }
  Case c = ordinary_case("dpo");
  c.spec.set("loss_type", std::string("ipo"));
  c.spec.set("beta", 0.4);
  const auto asked = [&](const char* option, const OptionValue& taken) {
    const auto fake = answering("dpo", [&](Case& x) { x.spec.set(option, taken); });
    CaseStudy study(pinned, c);
    const Violation violation{};
    Suspect suspect(study, fake, violation);
    return probe_options(suspect);
  };
  const std::pair<const char*, OptionValue> all[] = {{"beta", 0.2}, {"loss_type", "hinge"}};
  for (const auto& [option, taken] : all) {
    const Opinion opinion = asked(option, taken);
    ASSERT_TRUE(opinion) << option;
    EXPECT_EQ(opinion->because, "the answer is that of another value of " + std::string(option));
  }
  EXPECT_FALSE(asked("beta", 0.3)) << "no number that anything stands for";
}

TEST(ProbeOptions, BlameNoBoundAtWhichTheRightGradientIsRightToo) {
  reference::Loss on_policy = *reference::find_loss("grpo");
  std::ranges::find(on_policy.signature.fields, "old_log_prob", &Field::name)->absent = true;
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.0);
  change_each(c.batch.at("old_log_prob"), [](double) { return 0.0; });
  const auto halved = answering(
      "grpo", [](Case& x) { x.batch.at("old_log_prob") = x.batch.at("log_prob"); },
      [](const Case&, LossResult& result) {
        change_each(output(result, "gradient.log_prob"), [](double x) { return 0.5 * x; });
      });
  CaseStudy study(on_policy, c);
  const Violation violation{};
  Suspect suspect(study, halved, violation);
  ASSERT_TRUE(is_wrong_in_gradients_alone(suspect.plain()));
  Case tied = suspect.plain()->given();
  tied.spec.set("clip_low", 0.0);
  ASSERT_TRUE(suspect.plain()->answers(tied)) << "where the ratio of 1 stands at its bound";
  EXPECT_FALSE(probe_options(suspect));
}

TEST(ProbeOptions, BlameNoBoundThatTheGivenCaseDoesNotFeel) {
  Case c = ordinary_case("grpo");
  for (const char* bound : {"log_ratio_clamp", "kl_input_clamp", "kl_output_clamp"}) {
    c.spec.set(bound, None{});
  }
  c.spec.set("kl_penalty", 0.3);
  c.batch.at("ref_log_prob") = c.batch.at("log_prob");
  c.batch.at("old_log_prob").set(0, c.batch.at("log_prob").at(0) - 30.0);
  c.batch.at("advantage").set(0, -1.0);
  const auto bounded = answering("grpo", [](Case& x) {
    x.spec.set("log_ratio_clamp", 20.0);
    x.spec.set("kl_output_clamp", 10.0);
  });
  EXPECT_FALSE(speaks(probe_options, bounded, c)) << "far from each other all have one distance";
}

TEST(ProbeOptions, BlameNoBoundForNaNWhereTheFormulaDoesNotFeelIt) {
  Case c = ordinary_case("grpo");
  for (const char* bound : {"log_ratio_clamp", "kl_input_clamp"}) c.spec.set(bound, None{});
  c.spec.set("kl_penalty", 0.3);
  Case feeling = c;
  c.batch.at("ref_log_prob") = c.batch.at("log_prob");
  const double log_prob = c.batch.at("log_prob").at(0);
  for (Case* each : {&c, &feeling}) each->batch.at("old_log_prob").set(0, log_prob - 100.0);
  feeling.batch.at("ref_log_prob").set(0, log_prob + 100.0);
  const auto unbounded = answering(
      "grpo", [](Case& x) { x.spec.set("kl_output_clamp", None{}); },
      [](const Case& x, LossResult& result) {
        const bool far = x.batch.at("log_prob").at(0) - x.batch.at("old_log_prob").at(0) > 50.0;
        if (far) add_to_loss(result, std::numeric_limits<double>::quiet_NaN());
      });
  EXPECT_TRUE(speaks(probe_options, unbounded, feeling));
  EXPECT_FALSE(speaks(probe_options, unbounded, c)) << "a divergence of 0 has no bound";
}

TEST(ProbeOptions, TakesAFactorOnAllForNoHalfOfWhatDividesAll) {
  const auto halved = answering("sapo", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return 0.5 * x; });
  });
  Case c = ordinary_case("sapo");
  c.spec.reduction = Reduction::seq_mean_token_sum_norm;
  c.spec.set("max_length", 9.0);
  EXPECT_EQ(diagnosed(halved, c).because.find("another value"), std::string::npos);
}

TEST(ProbeOptions, DoNotTakeOneOfTwoMeansForAnotherValueOfAnOption) {
  const auto fake = larger_of_two_means();
  bool asked = false;
  ask_first_violation(fake, ordinary_case("value_clip"),
                      [&](CaseStudy& study, const Property&, const Violation& violation) {
                        asked = true;
                        Suspect suspect(study, fake, violation);
                        Case without = suspect.plain()->given();
                        without.spec.set("value_clip", None{});
                        ASSERT_TRUE(suspect.plain()->answers(without)) << "of one case it looks so";
                        EXPECT_FALSE(probe_options(suspect));
                        EXPECT_FALSE(probe_dead_clamp(suspect));
                        EXPECT_FALSE(probe_fields(suspect)) << "so does a clip around the return";
                      });
  EXPECT_TRUE(asked);
}

TEST(ProbeOptions, FindsACountThatIsLeftOutByItself) {
  const auto fake = answering("cross_entropy", [](Case& c) { c.spec.set("num_items", 1.0); });
  Case c = ordinary_case("cross_entropy");
  c.spec.reduction = Reduction::sum_over_items;
  c.spec.set("num_items", 24.0);
  Opinion opinion;
  ask_first_violation(fake, c, [&](CaseStudy& study, const Property&, const Violation& violation) {
    Suspect suspect(study, fake, violation);
    opinion = probe_options(suspect);
  });
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->because, "the answer is that of another value of num_items");
}

TEST(ProbeOptions, FindsBoundsThatAreTakenAroundOneOrAsDistancesFromIt) {
  const char* because = "bounds of a weight are taken for distances from 1";
  Case absolute = ordinary_case("cispo"), distance = ordinary_case("grpo");
  absolute.spec.set("weight_low", 0.7);
  absolute.spec.set("weight_high", 1.4);
  distance.spec.set("clip_low", 0.85);
  distance.spec.set("clip_high", 1.35);
  const auto reading = [](const char* loss, const char* low, double least, const char* high,
                          double most) {
    return answering(loss, [=](Case& c) {
      if (reference::expected_refusal(*reference::find_loss(loss), c)) return;
      c.spec.set(low, least);
      c.spec.set(high, most);
    });
  };
  expect_shown(reading("cispo", "weight_low", 1.0 - 0.7, "weight_high", 1.0 + 1.4), absolute,
               "option misread", because);
  expect_shown(reading("grpo", "clip_low", 1.0 - 0.85, "clip_high", 1.35 - 1.0), distance,
               "option misread", because);
}

constexpr const char* kOtherScale =
    "bounds of a weight are taken for those of its logarithm, or these for them";

TEST(ProbeOptions, FindsBoundsOfAWeightThatAreTakenForThoseOfItsLogarithmAndTheReverse) {
  const auto reading = [](const char* loss, double (*low)(double), double (*high)(double)) {
    return answering(loss, [=](Case& c) {
      if (reference::expected_refusal(*reference::find_loss(loss), c)) return;
      c.spec.set("clip_low", low(c.spec.number("clip_low")));
      c.spec.set("clip_high", high(c.spec.number("clip_high")));
    });
  };
  const auto of_weight = reading(
      "gmpo", [](double x) { return -std::log1p(-x); }, [](double x) { return std::log1p(x); });
  const auto of_logarithm = reading(
      "grpo", [](double x) { return -std::expm1(-x); }, [](double x) { return std::expm1(x); });
  for (const auto& fake : {of_weight, of_logarithm}) {
    Case c = ordinary_case(fake.loss);
    c.spec.set("clip_low", 0.15);
    c.spec.set("clip_high", 0.3);
    expect_shown(fake, c, "option misread", kOtherScale);
  }
}

TEST(ProbeOptions, TakesADistanceOfMoreThanAWeightHasForNoBound) {
  const auto& all = impl::catalog(false);
  const auto fault = std::ranges::find_if(all, [](const impl::Implementation& each) {
    return each.loss == "gmpo" && each.name == "bounds_of_the_weight";
  });
  ASSERT_NE(fault, all.end());
  Case c = ordinary_case("gmpo");
  c.spec.set("clip_low", 1.5);
  c.spec.set("clip_high", 3.0);
  at_positions(c, true, [&](std::int64_t p) {
    c.batch.at("advantage").set(p, -1.0);
    c.batch.at("old_log_prob").set(p, c.batch.at("log_prob").at(p) + 2.5);
  });
  expect_shown(*fault, c, "option misread", kOtherScale);
}

TEST(ProbeOptions, TakesNoOtherBoundForOneOfAnotherScale) {
  const auto narrower = answering("gmpo", [](Case& c) {
    if (reference::expected_refusal(*reference::find_loss("gmpo"), c)) return;
    for (const char* bound : {"clip_low", "clip_high"}) {
      c.spec.set(bound, 0.9 * c.spec.number(bound));
    }
  });
  Case c = ordinary_case("gmpo");
  c.spec.set("clip_low", 0.15);
  c.spec.set("clip_high", 0.3);
  EXPECT_FALSE(speaks(probe_options, narrower, c));
}

}  // namespace
}  // namespace lossgate::properties
