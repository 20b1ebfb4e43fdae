// SPDX-License-Identifier: Apache-2.0
#include "ci/rules.h"

#include <gtest/gtest.h>

#include "properties/property.h"

namespace lossgate::ci {
namespace {

constexpr char kText[] =
    "# Title\n\n## A. One\n\n**A1.** First.\n\n| a | table |\n\n**A2. Named.** Second\nline.\n\n"
    "## B. Two\n\n**B1.** Third.\n";

TEST(Rules, EndAtTheNextRuleOrHeading) {
  EXPECT_EQ(find_rule(kText, "A1"), "**A1.** First.\n\n| a | table |\n");
  EXPECT_EQ(find_rule(kText, "B1"), "**B1.** Third.\n");
  EXPECT_EQ(find_rule(kText, "C1"), std::nullopt);
  EXPECT_EQ(find_rule(kText, ""), std::nullopt);
}

TEST(Rules, ThatPropertiesRestOnAreAllThere) {
  const auto numbers = rule_numbers(rules_text());
  EXPECT_GT(numbers.size(), 20U);
  for (const auto& property : properties::catalog()) {
    const std::string first = property.rules.substr(0, property.rules.find_first_of(" -"));
    EXPECT_TRUE(find_rule(rules_text(), first)) << property.name << " rests on " << first;
  }
}

}  // namespace
}  // namespace lossgate::ci
