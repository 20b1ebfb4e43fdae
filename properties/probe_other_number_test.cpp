// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

struct Misread {
  const char* loss;
  const char* option;
  double given, taken;
};

impl::Implementation taking(const Misread& misread) {
  return answering(misread.loss, [=](Case& c) { c.spec.set(misread.option, misread.taken); });
}

TEST(ProbeOtherNumber, NamesWhateverNumberAnOptionIsTakenFor) {
  const Misread all[] = {
      {"gae", "lambda", 0.95, 0.8},       {"gae", "gamma", 1.0, 0.9},
      {"sapo", "tau_negative", 3.0, 2.2}, {"cross_entropy", "label_smoothing", 0.3, 0.17},
      {"grpo", "clip_high", 0.4, 0.28},   {"jsd", "temperature", 2.0, 1.7},
      {"dpo", "beta", 0.4, 0.17},
  };
  for (const Misread& misread : all) {
    Case c = ordinary_case(misread.loss);
    c.spec.set(misread.option, misread.given);
    std::ostringstream because;
    because << "the answer is that where " << misread.option << " is " << misread.taken;
    expect_shown(taking(misread), c, "option misread", because.str());
  }
}

TEST(ProbeOtherNumber, GivesTheNumberToAnOptionThatFollowsTheOtherToo) {
  reference::Loss one_distance = *reference::find_loss("grpo");
  for (Option& option : one_distance.signature.options) {
    if (option.name == "clip_high") option.follows = "clip_low";
  }
  const auto with_distance = [](Case& c, double distance) {
    c.spec.set("clip_low", distance);
    c.spec.set("clip_high", distance);
  };
  const auto fake = answering("grpo", [&](Case& c) { with_distance(c, 0.17); });
  Case c = ordinary_case("grpo");
  with_distance(c, 0.3);
  CaseStudy study(one_distance, c);
  const Violation violation;
  Suspect suspect(study, fake, violation);
  const Opinion opinion = probe_other_number(suspect);
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->because, "the answer is that where clip_low is 0.17");
}

TEST(ProbeOtherNumber, NamesNoneOfTwoOptionsThatExplainTheSame) {
  // No weight below exp(-3) is what a limit of 3 leaves of a log-ratio, and what a least weight
  // does.
  const Misread limit = {"cispo", "log_ratio_clamp", 20.0, 3.0};
  Case c = ordinary_case("cispo");
  c.batch.at("log_prob").set(0, c.batch.at("old_log_prob").at(0) - 6.0);
  EXPECT_FALSE(speaks(probe_other_number, taking(limit), c));
  c.spec.set("weight_high", 100.0);  // of large weights the limit alone is the least bound
  expect_shown(taking(limit), c, "option misread", "the answer is that where log_ratio_clamp is 3");
}

TEST(ProbeOtherNumber, TakesAnotherCountForNoNumber) {
  const auto among_others = answering("cross_entropy", [](Case& c) {
    const auto vocab = static_cast<double>(c.shape[Axis::vocab]);
    const double smoothing = c.spec.number("label_smoothing");
    if (vocab > 1.0) c.spec.set("label_smoothing", smoothing * vocab / (vocab - 1.0));
  });
  Case c = ordinary_case("cross_entropy");
  c.spec.set("label_smoothing", 0.3);
  EXPECT_FALSE(speaks(probe_other_number, among_others, c));
  EXPECT_EQ(
      diagnosed(among_others, c).because,
      "right where label_smoothing is 0 and off in proportion to it: the fault is in its term");
}

}  // namespace
}  // namespace lossgate::properties
