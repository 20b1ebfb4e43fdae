// SPDX-License-Identifier: Apache-2.0
#include "report/shell_word.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

namespace lossgate::report {
namespace {

constexpr const char* kTexts[] = {"lossgate.toml", "my project/lossgate.toml",
                                  "it's here",     "''",
                                  "a'b'c d",       "$HOME `id`",
                                  "back\\slash",   "ä b"};

std::string said_by_shell(const std::string& words) {
  const std::string command = "printf %s " + words;
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(command.c_str(), "r"), pclose);
  std::array<char, 256> said{};
  const std::size_t size = std::fread(said.data(), 1, said.size(), shell.get());
  return {said.data(), size};
}

TEST(ShellWord, IsTheTextToAShell) {
  for (const char* text : kTexts) EXPECT_EQ(said_by_shell(shell_word(text)), text);
}

TEST(ShellWord, IsReadBackFromTheBeginningOfALine) {
  for (const char* text : kTexts) {
    EXPECT_EQ(first_shell_word(shell_word(text)), text);
    EXPECT_EQ(first_shell_word(shell_word(text) + " --property 'x y'"), text);
  }
}

TEST(ShellWord, LeavesPlainTextAlone) {
  EXPECT_EQ(shell_word("run-1/found/grpo_f32@2.case"), "run-1/found/grpo_f32@2.case");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace lossgate::report
