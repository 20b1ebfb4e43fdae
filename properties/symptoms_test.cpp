// SPDX-License-Identifier: Apache-2.0
#include "properties/symptoms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

std::vector<std::string> shown_by(const impl::Implementation& implementation, const Case& c) {
  std::vector<const Property*> asked;
  for (const Property& property : catalog()) {
    if (property.tier == Tier::core) asked.push_back(&property);
  }
  CaseStudy study(grpo(), c);
  return symptoms_on(study, implementation, asked);
}

bool holds(const std::vector<std::string>& symptoms, const std::string& one) {
  return std::ranges::find(symptoms, one) != symptoms.end();
}

TEST(Symptoms, AreNoneOfASoundImplementation) {
  EXPECT_EQ(shown_by(fake_grpo(), grpo_case(2, 3)), std::vector<std::string>());
}

/// A masked position whose weight overflows.
Case overflow_behind_mask() {
  Case c = grpo_case(2, 3);
  c.spec.set("log_ratio_clamp", None{});
  put_log_ratio(c, 0, 2, 1000.0);
  put(c, "advantage", 0, 2, -1.0);
  mask_out(c, 0, 2);
  return c;
}

// A gate compares nothing with what is not finite.
TEST(Symptoms, AreAllThatIsViolatedWhateverComesFirst) {
  const auto symptoms = shown_by(fake_grpo(Flaw::mask_multiplied), overflow_behind_mask());
  EXPECT_TRUE(holds(symptoms, "finite_forward|non-finite value behind a mask|loss"));
  EXPECT_TRUE(holds(symptoms, "padding_invariance|non-finite value behind a mask|loss"));
}

TEST(Symptoms, AreThoseOfTransformedCasesInTheirOwnRight) {
  const auto symptoms = shown_by(fake_grpo(Flaw::mask_multiplied), overflow_behind_mask());
  EXPECT_TRUE(holds(symptoms, "reference_agreement|not finite|loss"));
  EXPECT_TRUE(holds(symptoms, "reference_agreement|not finite|gradient.log_prob@masked"));
  const auto of_empty = shown_by(fake_grpo(Flaw::empty_divided), grpo_case(2, 3));
  EXPECT_TRUE(holds(of_empty, "finite_forward|empty divisor|loss")) << "in which nothing counts";
  EXPECT_TRUE(holds(of_empty, "reference_agreement|not finite|loss"));
}

TEST(Symptoms, AreThoseOfTheFirstPropertyThatIsAskedToo) {
  CaseStudy study(grpo(), overflow_behind_mask());
  EXPECT_EQ(symptoms_on(study, fake_grpo(Flaw::mask_multiplied), {find_property("finite_forward")}),
            std::vector<std::string>{"finite_forward|non-finite value behind a mask|loss"});
}

}  // namespace
}  // namespace lossgate::properties
