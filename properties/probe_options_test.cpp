// SPDX-License-Identifier: Apache-2.0
// Options that are read otherwise: whatever an option was taken for is found.
#include <gtest/gtest.h>

#include <string>

#include "properties/fake_answer.h"

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
      {"jsd", "temperature", 2.0, 0.5},        // its inverse
      {"jsd", "beta", 0.25, 0.75},             // turned round
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

}  // namespace
}  // namespace lossgate::properties
