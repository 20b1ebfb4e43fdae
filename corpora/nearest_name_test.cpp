// SPDX-License-Identifier: Apache-2.0
#include "corpora/nearest_name.h"

#include <gtest/gtest.h>

namespace lossgate::corpora {
namespace {

TEST(NearestName, IsOneThatAFewSlipsOfThePenMakeOfIt) {
  const std::vector<std::string> known = {"micro_batches", "megabytes", "grpo"};
  EXPECT_EQ(nearest_name("micro_batch", known), "micro_batches");
  EXPECT_EQ(nearest_name("gropo", known), "grpo");
  EXPECT_EQ(nearest_name("colour", known), "");
  EXPECT_EQ(meant_text("gropo", known), "; did you mean 'grpo'?");
  EXPECT_EQ(meant_text("colour", known), "");
}

TEST(NearestName, IsTheCatalogsForWhatPapersCallALoss) {
  const std::vector<std::string> losses = {"dpo", "grpo", "jsd", "value_clip"};
  EXPECT_EQ(
      meant_text("ppo", losses),
      "; that is 'grpo' with kl_penalty = 0, dual_clip = \"none\", log_ratio_clamp = \"none\"");
  EXPECT_EQ(meant_text("value_loss", losses), "; that is 'value_clip'");
  EXPECT_EQ(meant_text("gpg", {"grpo", "reinforce"}), "; that is 'reinforce'");
  EXPECT_EQ(meant_text("ppo", {"dpo"}), "; did you mean 'dpo'?") << "where there is no such loss";
}

}  // namespace
}  // namespace lossgate::corpora
