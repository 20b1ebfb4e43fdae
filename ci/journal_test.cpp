// SPDX-License-Identifier: Apache-2.0
#include "ci/journal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ci/errors.h"
#include "corpora/given_folder.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  const fs::path& path() const { return path_; }

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void set(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

 private:
  GivenFolder folder_;
  fs::path path_ = folder_ / "journal";
};

TEST(Journal, GivesBackTheLinesThatWereAppended) {
  const Scratch scratch;
  {
    Journal journal(scratch.path());
    journal.append("one");
    journal.append("two words");
  }
  Journal(scratch.path()).append("");
  const JournalText read = read_journal(scratch.text());
  EXPECT_EQ(read.lines, (std::vector<std::string>{"one", "two words", ""}));
  EXPECT_EQ(read.damaged, 0);
}

TEST(Journal, HasOneWriterAtATime) {
  const Scratch scratch;
  const Journal journal(scratch.path());
  try {
    Journal(scratch.path());
    FAIL() << "two of them";
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("another lossgate works in this folder"),
              std::string::npos)
        << error.what();
  }
}

TEST(Journal, SkipsAndCountsADamagedLine) {
  Scratch scratch;
  {
    Journal journal(scratch.path());
    for (const char* line : {"one", "two", "three"}) journal.append(line);
  }
  std::string text = scratch.text();
  text[text.find("two")] = 'T';
  const JournalText read = read_journal(text);
  EXPECT_EQ(read.lines, (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(read.damaged, 1);
}

TEST(Journal, GoesOnAfterALineThatWasCut) {
  Scratch scratch;
  {
    Journal journal(scratch.path());
    journal.append("one");
    journal.append("two");
  }
  const std::string whole = scratch.text();
  for (std::size_t cut = whole.find('\n') + 1; cut < whole.size(); ++cut) {
    scratch.set(whole.substr(0, cut));
    Journal(scratch.path()).append("three");
    const JournalText read = read_journal(scratch.text());
    const bool nothing = cut == whole.find('\n') + 1, all = cut == whole.size() - 1;
    std::vector<std::string> left = {"one", "three"};
    if (all) left.insert(left.begin() + 1, "two");
    EXPECT_EQ(read.lines, left) << cut;
    EXPECT_EQ(read.damaged, nothing || all ? 0 : 1) << cut;
  }
}

RC_GTEST_PROP(Journal, AnyBytesAreReadWithoutAnError, (std::string bytes)) {
  const JournalText read = read_journal(bytes);
  RC_ASSERT(read.lines.size() + static_cast<std::size_t>(read.damaged) <= bytes.size() + 1);
}

TEST(Journal, WhatTheDiskDoesNotTakeWaitsUntilItDoes) {
  const Scratch scratch;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  {
    Journal journal(scratch.path());
    journal.append("one");
    rlimit full = before;
    full.rlim_cur = 30;  // the second line does not fit
    ::setrlimit(RLIMIT_FSIZE, &full);
    journal.append("two");
    journal.append("three");
    EXPECT_EQ(journal.waiting(), 2u);
    EXPECT_FALSE(journal.trouble().empty());
    EXPECT_FALSE(journal.flush());
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(journal.flush());
    EXPECT_EQ(journal.trouble(), "");
  }
  EXPECT_EQ(read_journal(scratch.text()).lines, (std::vector<std::string>{"one", "two", "three"}));
}

}  // namespace
}  // namespace lossgate::ci
