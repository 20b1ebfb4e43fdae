// SPDX-License-Identifier: Apache-2.0
#include "impl/external/lookahead.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lossgate::impl {
namespace {

constexpr double kSeconds = 10.0;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

/// Answers each frame with itself.
Command echo(const std::string& script = "cat") { return {{"sh", "-c", script}, "/", {}}; }

class Foreseeing : public testing::Test {
 protected:
  std::vector<std::byte> ask(std::string_view text) {
    return ahead_.ask(process_, bytes_of(text), kSeconds);
  }
  void send(std::initializer_list<std::string_view> texts) {
    ahead_.begin(process_, kSeconds);
    for (const std::string_view text : texts) {
      ASSERT_TRUE(ahead_.send(process_, bytes_of(text), kSeconds));
    }
  }

  Process process_{echo()};
  Lookahead ahead_;
};

TEST_F(Foreseeing, GivesEachQuestionItsOwnAnswerInWhateverOrderTheyAreAsked) {
  send({"first", "second", "third"});
  EXPECT_EQ(ask("second"), bytes_of("second"));
  EXPECT_EQ(ask("unforeseen"), bytes_of("unforeseen"));
  EXPECT_EQ(ask("third"), bytes_of("third"));
  EXPECT_EQ(ask("first"), bytes_of("first"));
}

TEST_F(Foreseeing, AsksAQuestionAgainThatWasForeseenOnce) {
  send({"same", "other"});
  EXPECT_EQ(ask("same"), bytes_of("same"));
  EXPECT_TRUE(ahead_.waits());
  EXPECT_EQ(ask("same"), bytes_of("same"));
  EXPECT_FALSE(ahead_.waits());
  EXPECT_EQ(ask("other"), bytes_of("other"));
}

TEST_F(Foreseeing, ForgetsWhatNobodyAskedWhenItBeginsAnew) {
  send({"never asked", "nor this"});
  send({"asked"});
  EXPECT_EQ(ask("asked"), bytes_of("asked"));
}

TEST_F(Foreseeing, SendsNoMoreThanFitsWhileNobodyListens) {
  const std::vector<std::byte> frame(10000);
  ahead_.begin(process_, kSeconds);
  int sent = 0;
  while (ahead_.send(process_, frame, kSeconds)) ++sent;
  EXPECT_GE(sent, 1);
  EXPECT_LE(sent, 6);  // a pipe of Linux holds 64 KiB
  EXPECT_FALSE(ahead_.send(process_, bytes_of("small"), kSeconds)) << "out of its turn";
  for (int i = 0; i < sent; ++i) EXPECT_EQ(ahead_.ask(process_, frame, kSeconds), frame);
  EXPECT_EQ(ask("small"), bytes_of("small"));
}

TEST(Lookahead, SaysThatTheProcessEndedToWhoeverAsks) {
  Process process(echo("head -c 13; exit 3"));  // the answer to one frame of five bytes
  Lookahead ahead;
  ahead.begin(process, kSeconds);
  ASSERT_TRUE(ahead.send(process, bytes_of("first"), kSeconds));
  ASSERT_TRUE(ahead.send(process, bytes_of("other"), kSeconds));
  EXPECT_EQ(ahead.ask(process, bytes_of("first"), kSeconds), bytes_of("first"));
  EXPECT_THROW(ahead.ask(process, bytes_of("other"), kSeconds), ProcessEnded);
}

}  // namespace
}  // namespace lossgate::impl
