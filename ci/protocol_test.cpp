// SPDX-License-Identifier: Apache-2.0
#include "ci/protocol.h"

#include <gtest/gtest.h>

namespace lossgate::ci {
namespace {

TEST(Protocol, ReadsBackPlanAndTask) {
  PlanOptions options;
  options.filters.losses = {"grpo"};
  options.profile = fuzz::Profile::soak;
  options.seed = UINT64_MAX;
  options.corpora = {"a \"b\"\n"};
  const std::string line = encode(options);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(encode(decode_plan(line)), line);
  const Task task{.begin = 3, .end = 9, .loss = "grpo", .variant = "x", .skips = {{4, "y"}}};
  EXPECT_EQ(encode(decode_task(encode(task))), encode(task));
}

}  // namespace
}  // namespace lossgate::ci
