// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// The reason that the property gives on a case of GRPO, once its loss is changed.
std::string reason_of(const char* property, void (*change)(LossSignature&)) {
  reference::Loss loss = grpo();
  change(loss.signature);
  CaseStudy study(loss, grpo_case(2, 3));
  const auto fake = fake_grpo();
  Evaluation evaluation(study, fake);
  return find_property(property)->check(evaluation).reason;
}

TEST(NotApplicable, IsWhatALossHasNoPartIn) {
  const auto as_it_is = [](LossSignature&) {};
  EXPECT_EQ(
      reason_of("zero_advantage_zero_gradient", [](LossSignature& loss) { loss.advantage = ""; }),
      "does not apply");
  EXPECT_NE(reason_of("zero_advantage_zero_gradient", as_it_is), "does not apply");
  EXPECT_EQ(reason_of("on_policy_identity", [](LossSignature& loss) { loss.on_policy.clear(); }),
            "does not apply");
  EXPECT_NE(reason_of("on_policy_identity", as_it_is), "does not apply");
  EXPECT_EQ(reason_of("path_parity", as_it_is), "does not apply") << "nothing to compare with";
}

TEST(NotApplicable, IsARangeThatNoOutputHas) {
  EXPECT_EQ(reason_of("bounds_hold",
                      [](LossSignature& loss) {
                        for (OutputField& output : loss.outputs) output.range = nullptr;
                      }),
            "does not apply");
}

}  // namespace
}  // namespace lossgate::properties
