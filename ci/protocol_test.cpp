// SPDX-License-Identifier: Apache-2.0
#include "ci/protocol.h"

#include <gtest/gtest.h>

#include "ci/errors.h"

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

// What a subject said decides what it is asked, in a worker as in its parent.
TEST(Protocol, TellsAWorkerWhatASubjectSaid) {
  impl::Greeting greeting;
  greeting.source = {"losses.py", 7};
  greeting.arguments = {{"bias", "field:bias"}};
  greeting.options = {"z_loss"};
  greeting.reduction = true;
  PlanOptions options;
  options.filters.subjects = {{"text", "lossgate.toml", "/folder", {{"mine", greeting}}}};
  const auto subjects = decode_plan(encode(options)).filters.subjects;
  const impl::Greeting& read = subjects.at(0).greetings.at("mine");
  EXPECT_EQ(read.source.line, 7);
  EXPECT_EQ(read.arguments, greeting.arguments);
  EXPECT_EQ(read.options, greeting.options);
  EXPECT_TRUE(read.reduction);
}

// A worker that answers nonsense is the harness' failure, not a mistake in what was asked.
TEST(Protocol, ARecordThatIsNoneIsTheMachinesFailure) {
  EXPECT_THROW(decode_record(R"({"format_version": "three"})"), MachineError);
  EXPECT_THROW(decode_record("not json"), MachineError);
}

}  // namespace
}  // namespace lossgate::ci
