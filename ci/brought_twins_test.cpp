// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "ci/brought.h"
#include "ci/errors.h"
#include "ci/selection.h"

namespace lossgate::ci {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kTwin = "mine-without-old_log_prob";

/// A function that may be called without old log-probs, loaded already, and what it said. Nothing
/// starts its process.
SubjectFile file_of(const Names& loaded, const std::string& more = "") {
  impl::Greeting greeting;
  greeting.reduction = true;
  greeting.arguments = {{"log_prob", "field:log_prob"}, {"advantage", "field:advantage"},
                        {"mask", "field:mask"},         {"ref", "field:ref_log_prob"},
                        {"old", "field:old_log_prob"},  {"limit", "option:log_ratio_clamp"}};
  greeting.omissible = {"mask", "old"};
  SubjectFile file{
      .text = "[[subject]]\nname = 'mine'\nloss = 'grpo'\nentry = 'py:a.py:f'\n" + more,
      .name = "lossgate.toml",
      .folder = "."};
  for (const std::string& name : loaded) {
    if (name == kTwin)
      std::erase(greeting.arguments,
                 std::pair<std::string, std::string>("old", "field:old_log_prob"));
    file.greetings.emplace(name, greeting);
  }
  return file;
}

Names brought_by(const SubjectFile& file, const Names& names = {}) {
  Names found;
  for (const auto& one : bring(file, names)) found.push_back(one->implementation.name);
  return found;
}

TEST(BroughtTwins, LeaveOutWhatTheFunctionMayBeCalledWithout) {
  const auto all = bring(file_of({"mine", kTwin}), {});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_FALSE(all[0]->loss.signature.find_field("old_log_prob")->absent);
  EXPECT_EQ(all[0]->subject.most_cases, 0);
  const Brought& twin = *all[1];
  EXPECT_EQ(twin.implementation.name, kTwin);
  EXPECT_TRUE(twin.loss.signature.find_field("old_log_prob")->absent);
  EXPECT_EQ(twin.subject.arguments.at(0), std::pair(std::string("old"), std::string("default")));
  EXPECT_EQ(twin.subject.most_cases, 100);
  EXPECT_EQ(twin.session->host(), all[0]->session->host()) << "torch would be imported twice";
}

TEST(BroughtTwins, AreInAWorkerThoseOfItsParent) {
  EXPECT_EQ(brought_by(file_of({"mine"})), Names{"mine"});
}

TEST(BroughtTwins, AreAskedByTheirNames) {
  const SubjectFile file = file_of({"mine", kTwin});
  EXPECT_EQ(brought_by(file, {kTwin}), Names{kTwin});
  EXPECT_EQ(brought_by(file, {"mine"}), Names{"mine"});
  Filters filters;
  filters.subjects = {file};
  filters.implementations = {kTwin};
  EXPECT_NO_THROW(check_names(filters));
  filters.implementations = {"mine-without-advantage"};
  EXPECT_THROW(check_names(filters), InputError);
}

TEST(BroughtTwins, AreNoneWhereTheContractSaysThatCallersGiveEverything) {
  const std::string contract = "contract = { omitted_fields = false }\n";
  EXPECT_EQ(brought_by(file_of({"mine", kTwin}, contract)), Names{"mine"});
}

TEST(BroughtTwins, GiveWayToADeclaredSubjectOfTheirName) {
  const std::string more =
      std::string("[[subject]]\nname = '") + kTwin + "'\nloss = 'grpo'\nentry = 'py:a.py:f'\n";
  EXPECT_EQ(brought_by(file_of({"mine", kTwin}, more)), (Names{"mine", kTwin}));
}

}  // namespace
}  // namespace lossgate::ci
