// SPDX-License-Identifier: Apache-2.0
#include "impl/external/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "corpora/given_folder.h"

namespace lossgate::impl {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

/// What a shell script makes of one frame.
std::vector<std::byte> ask(const std::string& script, double seconds = 10.0) {
  Process process(Command{{"sh", "-c", script}, "/", {{"GREETING", "hello"}}});
  return process.ask(bytes_of("frame"), seconds);
}

template <class Error>
std::string error_of(const std::string& script, double seconds = 10.0) {
  try {
    ask(script, seconds);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Whether a process runs; one that nobody has asked after is a zombie, and does not.
bool lives(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z";
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Process, AnswersOneFrameForOne) {
  EXPECT_EQ(ask("cat"), bytes_of("frame"));
  EXPECT_EQ(ask("head -c 13 >&2; printf '\\005\\0\\0\\0\\0\\0\\0\\0%s' $GREETING"),
            bytes_of("hello"));
}

TEST(Process, TakesFramesThatNoPipeHolds) {
  Process process(Command{{"cat"}, "", {}});
  // cat answers while it is still being asked, so this much would block both sides.
  const std::vector<std::byte> frame(1 << 15);
  EXPECT_EQ(process.ask(frame, 10.0), frame);
  EXPECT_EQ(process.ask(frame, 10.0), frame);
}

TEST(Process, TakesAFrameThatHasNoAnswer) {
  Process process(Command{{"sh", "-c", "head -c 100008 | cksum >&2; cat"}, "", {}});
  process.tell(std::vector<std::byte>(100000), 10.0);  // more than a pipe holds
  EXPECT_EQ(process.ask(bytes_of("frame"), 10.0), bytes_of("frame"));
}

TEST(Process, SaysHowItEnded) {
  EXPECT_TRUE(says(error_of<ProcessEnded>("exit 3"), "exited with status 3"));
  EXPECT_TRUE(says(error_of<ProcessEnded>("kill -SEGV $$"), "killed by signal 11"));
  EXPECT_TRUE(says(error_of<ProcessEnded>("echo first >&2; echo why >&2; exit 1"),
                   "it said last: why; before that: first"));
  EXPECT_TRUE(
      says(error_of<ProcessEnded>("head -c 13 >&2; printf 'hello, this is no frame'"), "no frame"));
  EXPECT_TRUE(says(error_of<ProcessEnded>("exec 0<&-; exec 1>&-; sleep 60"), "killed by signal 9"));
}

TEST(Process, KeepsLittleOfWhatItWritesToStandardError) {
  const std::string answer = "printf '\\010\\0\\0\\0\\0\\0\\0\\0%08d' ",
                    hear = "head -c 13 >/dev/null; ";
  Process process(Command{{"sh", "-c",
                           hear + "yes | head -c 8000000 >&2; " + answer + "0; " + hear + answer +
                               "$(stat -Lc %s /proc/$$/fd/2)"},
                          "/",
                          {}});
  EXPECT_EQ(process.ask(bytes_of("frame"), 10.0), bytes_of("00000000"));
  EXPECT_EQ(process.ask(bytes_of("frame"), 10.0), bytes_of("00000000"));
}

TEST(Process, IsQuotedWithNothingThatItSaidBeforeAnEarlierAnswer) {
  Process process(
      Command{{"sh", "-c",
               "head -c 13 >/dev/null; echo earlier >&2; printf '\\0\\0\\0\\0\\0\\0\\0\\0'; "
               "head -c 13 >/dev/null; echo why >&2; exit 1"},
              "/",
              {}});
  process.ask(bytes_of("frame"), 10.0);
  try {
    process.ask(bytes_of("frame"), 10.0);
    ADD_FAILURE() << "it ended";
  } catch (const ProcessEnded& error) {
    EXPECT_TRUE(std::string_view(error.what()).ends_with("it said last: why")) << error.what();
  }
}

TEST(Process, IsAskedWhereItWasWhereItCanSay) {
  const std::string hangs =
      "trap 'echo \"Current thread (most recent call first):\" >&2; "
      "echo \"  File \\\"/x/losses.py\\\", line 8 in f\" >&2; exit 1' ABRT; sleep 60 & wait";
  const auto said = [&](bool says_where) {
    Process process(Command{{"sh", "-c", hangs}, "/", {}, 0, says_where});
    try {
      process.ask(bytes_of("frame"), 0.5);
    } catch (const ProcessHung& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(said(true), "no answer in the time that a call has; it was at losses.py:8 in f");
  EXPECT_EQ(said(false), "no answer in the time that a call has");
}

TEST(Process, IsEndedBySignalsThatWeIgnore) {
  const auto before = ::signal(SIGTERM, SIG_IGN);
  EXPECT_TRUE(says(error_of<ProcessEnded>("kill -TERM $$; sleep 60"), "killed by signal 15"));
  ::signal(SIGTERM, before);
}

TEST(Process, ThatCannotBeStartedSaysWhy) {
  EXPECT_THROW(Process(Command{{"/no/such/program"}, "", {}}), ProcessEnded);
  EXPECT_THROW(Process(Command{{"sh"}, "/no/such/folder", {}}), ProcessEnded);
}

TEST(Process, IsGivenUpAfterItsTimeWithAllThatItStarted) {
  const GivenFolder folder;
  const std::string file = folder / "child";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(says(error_of<ProcessHung>("sleep 60 & echo $! > " + file + "; wait", 0.3),
                   "no answer in the time"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  for (int i = 0; i < 100 && lives(child); ++i) ::usleep(10000);
  EXPECT_FALSE(lives(child));
}

TEST(Process, TakesAlongWhatHasLeftItsGroup) {
  const GivenFolder folder;
  const std::string file = folder / "daemon";
  // In a session of its own, and its parent is gone.
  error_of<ProcessEnded>("setsid sh -c 'sleep 60 >/dev/null & echo $! > " + file + "'; exit 1");
  pid_t daemon = 0;
  std::ifstream(file) >> daemon;
  ASSERT_GT(daemon, 0);
  for (int i = 0; i < 100 && lives(daemon); ++i) ::usleep(10000);
  EXPECT_FALSE(lives(daemon));
}

TEST(Process, HasNoDescriptorOfOurs) {
  const int ours = ::dup(2);
  const std::string there = "test -e /proc/$$/fd/" + std::to_string(ours) + " && exit 4; exit 3";
  EXPECT_TRUE(says(error_of<ProcessEnded>(there), "exited with status 3"));
  ::close(ours);
}

TEST(Process, IsRefusedMoreMemoryThanItMayHave) {
  const std::string hoard = "head -c 400000000 /dev/zero | tail -c 300000000 >/dev/null || exit 5";
  const auto status = [&](std::int64_t megabytes) {
    Process process(Command{{"sh", "-c", hoard}, "/", {}, megabytes});
    try {
      process.ask(bytes_of("frame"), 60.0);
    } catch (const ProcessEnded& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_TRUE(says(status(0), "exited with status 0")) << status(0);
  EXPECT_TRUE(says(status(100), "exited with status 5")) << status(100);
}

TEST(Process, AllocatesNothingThatIsOnlyClaimed) {
  // 2^31 bytes announced, three sent.
  EXPECT_TRUE(says(error_of<ProcessEnded>("head -c 13 >&2; printf '\\0\\0\\0\\200\\0\\0\\0\\0abc'"),
                   "exited"));
}

}  // namespace
}  // namespace lossgate::impl
