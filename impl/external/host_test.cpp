// SPDX-License-Identifier: Apache-2.0
#include "impl/external/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "corpora/given_folder.h"

namespace lossgate::impl {
namespace {

Subject subject_with(const std::function<void(Subject&)>& change) {
  Subject subject;
  subject.name = "mine";
  subject.entry = "py:mine.py:loss";
  subject.folder = "/";
  change(subject);
  return subject;
}

TEST(Host, ServesSubjectsThatDifferInWhatTheyAreAsked) {
  const Host host(subject_with([](Subject&) {}));
  EXPECT_TRUE(host.serves(subject_with([](Subject& subject) {
    subject.name = "other";
    subject.entry = "py:other.py:loss";
    subject.loss = "grpo";
    subject.seconds = 1.0;
    subject.arguments = {{"lp", "field:log_prob"}};
  })));
}

TEST(Host, ServesTheSameFolderHoweverItIsWritten) {
  const GivenFolder folder;
  std::filesystem::create_directory(folder / "below");
  const auto subject_in = [](const std::filesystem::path& place) {
    return subject_with([&](Subject& subject) { subject.folder = place; });
  };
  const Host host(subject_in(folder.path()));
  EXPECT_TRUE(host.serves(subject_in(folder / "")));
  EXPECT_TRUE(host.serves(subject_in(folder / "below/..")));
  EXPECT_FALSE(host.serves(subject_in(folder / "below")));
  EXPECT_FALSE(host.serves(subject_in(folder / "absent")));
}

TEST(Host, ServesNobodyWhoAsksForAnotherProcess) {
  const std::vector<std::function<void(Subject&)>> changes = {
      [](Subject& subject) { subject.interpreter = "python3.9"; },
      [](Subject& subject) { subject.folder = "/tmp"; },
      [](Subject& subject) { subject.path = {"release"}; },
      [](Subject& subject) {
        subject.environment = {{"TRITON_INTERPRET", "1"}};
      },
      [](Subject& subject) { subject.device = "cuda"; },
      [](Subject& subject) { subject.threads = 2; },
      [](Subject& subject) { subject.megabytes = 4000; },
      [](Subject& subject) { subject.entry = "so:libmine.so:loss"; },
  };
  const Host host(subject_with([](Subject&) {}));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_FALSE(host.serves(subject_with(changes[i]))) << "change " << i;
  }
}

TEST(Host, KeepsALibraryByItself) {
  const Subject library =
      subject_with([](Subject& subject) { subject.entry = "so:libmine.so:loss"; });
  EXPECT_FALSE(Host(library).serves(library));
}

TEST(Host, WaitsForALibraryNoLongerThanItTakesToOpenOne) {
  const Loading python = loading_of(subject_with([](Subject&) {}));
  const Loading library =
      loading_of(subject_with([](Subject& subject) { subject.entry = "so:libmine.so:loss"; }));
  EXPECT_EQ(python.seconds, 180.0);
  EXPECT_STREQ(python.late, "it was not loaded within three minutes");
  EXPECT_EQ(library.seconds, 60.0);
  EXPECT_TRUE(std::string(library.late).starts_with("opening it did not return within a minute"));
}

TEST(Host, SaysThatAFolderIsNotThere) {
  const Subject lost = subject_with([](Subject& subject) { subject.folder = "/sorce"; });
  Host host(lost);
  try {
    greet(host, lost, {});
    FAIL();
  } catch (const SubjectError& error) {
    EXPECT_STREQ(error.what(), "mine: there is no folder /sorce");
  }
  EXPECT_EQ(host.running(), 0);
}

TEST(Host, CountsItsProcesses) {
  const GivenFolder folder;
  const std::filesystem::path program = folder / "listens";
  std::ofstream(program) << "#!/bin/sh\nexec cat >/dev/null\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Host host(subject_with([&](Subject& subject) { subject.interpreter = program.string(); }));
  EXPECT_EQ(host.running(), 0);
  host.start();
  host.start();
  EXPECT_EQ(host.running(), 1);
  host.end();
  EXPECT_EQ(host.running(), 0);
  host.start();
  EXPECT_EQ(host.running(), 2);
}

}  // namespace
}  // namespace lossgate::impl
