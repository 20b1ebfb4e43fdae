// SPDX-License-Identifier: Apache-2.0
#include "properties/given_table.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace lossgate::properties {
namespace {

/// One line each of the first that the second lacks.
std::string lacking(const std::set<std::string>& lines, const std::set<std::string>& other) {
  std::string text;
  for (const std::string& line : lines) {
    if (!other.contains(line)) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace

void expect_kept(const std::string& file, const std::set<std::string>& found) {
  std::string head;
  std::set<std::string> kept;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) {
      head += line + "\n";
    } else {
      kept.insert(line);
    }
  }
  if (found == kept) return;
  const std::string renewed =
      testing::TempDir() + "renewed_" + std::filesystem::path(file).filename().string();
  std::ofstream out(renewed);
  out << head;
  for (const std::string& line : found) out << line << "\n";
  ADD_FAILURE() << "no more so:\n"
                << lacking(kept, found) << "now:\n"
                << lacking(found, kept) << "If that is better, cp " << renewed << " " << file;
}

std::string given_table(const std::string& name) {
  return LOSSGATE_SOURCE_DIR "/properties/testdata/" + name;
}

namespace {

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(GivenTable, ShowsTheDifferenceAndWritesWhatRenewsIt) {
  static const std::string file = testing::TempDir() + "given_table.txt";
  std::ofstream(file) << "# head\na 1\nb 2\n";
  expect_kept(file, {"a 1", "b 2"});
  EXPECT_NONFATAL_FAILURE(expect_kept(file, {"a 1", "b 3"}),
                          "no more so:\n  b 2\nnow:\n  b 3\nIf that is better, cp ");
  EXPECT_NONFATAL_FAILURE(expect_kept(file, {"a 1"}), "no more so:\n  b 2\nnow:\nIf");
  EXPECT_NONFATAL_FAILURE(expect_kept(file, {"0", "a 1", "b 2"}), "no more so:\nnow:\n  0\nIf");
  EXPECT_EQ(text_of(testing::TempDir() + "renewed_given_table.txt"), "# head\n0\na 1\nb 2\n");
}

}  // namespace
}  // namespace lossgate::properties
