// SPDX-License-Identifier: Apache-2.0
// Options that are read otherwise: whatever an option was taken for is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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

TEST(ProbeNeededOptions, CallNoForwardRightWhoseLossIsWrong) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.batch.at("advantage").at(0) == 1e3) add_to_loss(result, 100.0);
    if (c.spec.is_none("log_ratio_clamp")) return;
    at_positions(c, true, [&](std::int64_t p) {
      Tensor& gradient = output(result, "gradient.log_prob");
      gradient.set(p, gradient.at(p) + 0.03);
    });
  });
  Case c = ordinary_case("grpo");
  c.spec.set("log_ratio_clamp", 20.0);
  EXPECT_TRUE(speaks(probe_needed_options, fake, c));
  c.batch.at("advantage").set(0, 1e3);
  EXPECT_FALSE(speaks(probe_needed_options, fake, c));
}

TEST(ProbeNeededOptions, FindsTheOneValueWithWhichAllIsRight) {
  struct Needed {
    const char* option;
    OptionValue value;
    const char* text;
  };
  const Needed all[] = {
      {"log_ratio_clamp", None{}, "none"},  // no bound
      {"clip_low", 0.0, "0"},               // left out
      {"clip_high", 1.0, "1"},              // left out as a factor
      {"kl_estimator", "k3", "k3"},         // the standard
  };
  for (const auto& [option, needed, text] : all) {
    const auto fake = answering("grpo", nullptr, [&](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t) {
        if (*c.spec.find(option) != needed) add_to_loss(result, 0.03);
      });
    });
    Case c = ordinary_case("grpo");
    c.spec.set("kl_estimator", std::string("k1"));
    expect_shown(fake, c, "option misread", "right where " + std::string(option) + " is " + text);
  }
}

TEST(ProbeNeededOptions, TellAFaultOfATermFromAnOptionThatIsReadOtherwise) {
  const auto off_by = [](double (*error)(double z_loss)) {
    return answering("cross_entropy", nullptr, [error](const Case& c, LossResult& result) {
      const double off = 0.1 * error(c.spec.number("z_loss"));
      at_positions(c, true, [&](std::int64_t) { add_to_loss(result, off); });
    });
  };
  Case c = ordinary_case("cross_entropy");
  c.spec.set("z_loss", 0.3);
  const std::string right = "right where z_loss is 0";
  expect_shown(off_by([](double z) { return z; }), c, "option misread",
               right + " and off in proportion to it: the fault is in its term");
  expect_shown(off_by([](double z) { return z * z; }), c, "option misread", right);
}

TEST(ProbeNeededOptions, FindsTheOnesWithWhichAllIsRight) {
  const auto fake = answering("sapo", nullptr, [](const Case& c, LossResult& result) {
    const bool ones = c.spec.number("tau_positive") == 1.0 && c.spec.number("tau_negative") == 1.0;
    at_positions(c, true, [&](std::int64_t) {
      if (!ones) add_to_loss(result, 0.03);
    });
  });
  Case c = ordinary_case("sapo");
  c.spec.set("tau_positive", 2.0);
  c.spec.set("tau_negative", 3.0);
  expect_shown(fake, c, "option misread", "right where numbers among the options are 1");
}

TEST(ProbeNeededOptions, NameNoOptionThatSilencesTheOneThatIsMisread) {
  // Of gamma 0 the formula does not feel lambda.
  const auto fake = answering("gae", nullptr, [](const Case& c, LossResult& result) {
    const double off = 0.03 * c.spec.number("gamma") * c.spec.number("lambda");
    Tensor& advantage = output(result, "advantage");
    at_positions(c, true, [&](std::int64_t p) { advantage.set(p, advantage.at(p) + off); });
  });
  expect_shown(fake, ordinary_case("gae"), "option misread", "right where lambda is 0");
}

TEST(ProbeNeededOptions, NameTheLimitThatIsMisreadBeforeAnotherThatHoldsAllThereIs) {
  const auto fake = answering("cispo", [](Case& c) {
    if (!c.spec.is_none("log_ratio_clamp")) c.spec.set("log_ratio_clamp", 3.0);
  });
  Case c = ordinary_case("cispo");
  c.batch.at("log_prob").set(0, c.batch.at("old_log_prob").at(0) - 6.0);
  expect_shown(fake, c, "option misread", "right where log_ratio_clamp is none");
}

TEST(ProbeNeededOptions, BlameNoOptionThatSilencesAField) {
  // Where all is smoothed no label counts.
  const auto fake = answering("cross_entropy", [](Case& c) {
    const double last = static_cast<double>(c.shape[Axis::vocab]) - 1.0;
    change_each(c.batch.at("label"), [&](double x) { return x == last ? x - 1.0 : x; });
  });
  EXPECT_FALSE(speaks(probe_needed_options, fake, ordinary_case("cross_entropy")));
}

TEST(ProbeNeededOptions, LeaveAloneANumberThatCannotBeOne) {
  // Of the two, clip_low is always below 1.
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool right = c.spec.number("clip_low") == 0.0 && c.spec.number("clip_high") == 1.0;
    at_positions(c, true, [&](std::int64_t) {
      if (!right) add_to_loss(result, 0.03);
    });
  });
  EXPECT_EQ(diagnosed(fake, ordinary_case("grpo")).because, "");
}

}  // namespace
}  // namespace lossgate::properties
