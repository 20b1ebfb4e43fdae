// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Advantages that a masked token decays as any other does, if it adds so much of its reward.
impl::Implementation decaying_where_masked(double share) {
  return answering("gae", nullptr, [share](const Case& c, LossResult& result) {
    const std::vector<bool> valid = valid_of(c);
    const double gamma = c.spec.number("gamma"), decay = gamma * c.spec.number("lambda");
    const Tensor &reward = c.batch.at("reward"), &value = c.batch.at("value");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t row = 0; row < c.shape[Axis::sequences]; ++row) {
      double next_value = 0.0, next = 0.0;
      for (std::int64_t i = (row + 1) * tokens - 1; i >= row * tokens; --i) {
        next *= decay;
        if (!valid[static_cast<std::size_t>(i)]) {
          if (share > 0.0) next += share * reward.at(i);  // 0 times an infinity is NaN
          continue;
        }
        next += reward.at(i) + gamma * next_value - value.at(i);
        next_value = value.at(i);
        output(result, "advantage").set(i, next);
        output(result, "return").set(i, next + next_value);
      }
    }
  });
}

TEST(ProbeGaps, NamesAMaskedTokenThatIsAStep) {
  Case c = ordinary_case("gae");
  change_each(c.batch.at("mask"), [](double) { return 1.0; });
  mask_position(*reference::find_signature("gae"), c, 1);
  expect_shown(decaying_where_masked(0.0), c, "padding counted",
               "right where what is masked between two tokens stands behind the last one");
  EXPECT_FALSE(speaks(probe_gaps, decaying_where_masked(1.0), c));
}

}  // namespace
}  // namespace lossgate::properties
