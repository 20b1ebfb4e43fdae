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
  options.causes = false;
  const std::string line = encode(options);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(encode(decode_plan(line)), line);
  EXPECT_FALSE(decode_plan(line).causes);
  const Task task{.begin = 3, .end = 9, .loss = "grpo", .variant = "x", .skips = {{4, "y"}}};
  EXPECT_EQ(encode(decode_task(encode(task))), encode(task));
}

// What a subject said decides what it is asked, in a worker as in its parent.
TEST(Protocol, TellsAWorkerWhatASubjectSaid) {
  const impl::Greeting greeting{.source = {"losses.py", 7, "--config lossgate.toml"},
                                .code = "def mine(bias):",
                                .versions = {{"torch", "2.11"}},
                                .arguments = {{"bias", "field:bias"}},
                                .options = {"z_loss"},
                                .facts = {"global_tokens"},
                                .reduction = true,
                                .tied = {{"low", "high"}},
                                .defaults = {},
                                .omissible = {"bias"},
                                .left = {}};
  PlanOptions options;
  options.filters.subjects = {{"text", "lossgate.toml", "/folder", {{"mine", greeting}}}};
  const auto subjects = decode_plan(encode(options)).filters.subjects;
  EXPECT_EQ(subjects.at(0).greetings.at("mine"), greeting);
}

// A worker that answers nonsense is the harness' failure, not a mistake in what was asked.
TEST(Protocol, ARecordThatIsNoneIsTheMachinesFailure) {
  EXPECT_THROW(decode_record(R"({"format_version": "three"})"), MachineError);
  EXPECT_THROW(decode_record("not json"), MachineError);
}

}  // namespace
}  // namespace lossgate::ci
