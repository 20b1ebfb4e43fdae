// SPDX-License-Identifier: Apache-2.0
#include "properties/verdict.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

TEST(Grade, IsReadBackFromItsNameAndFromNoOther) {
  std::set<std::string_view> names;
  for (const Grade grade : kAllGrades) {
    EXPECT_EQ(parse_grade(name(grade)), grade);
    names.insert(name(grade));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"ordinary", "rare", "adversarial"}));
  EXPECT_FALSE(parse_grade("Rare"));
  EXPECT_FALSE(parse_grade(""));
}

TEST(Violation, OfAnAnswerWithoutNumbersShowsNone) {
  for (const Flaw flaw : {Flaw::legal_refused, Flaw::output_missing}) {
    const auto violation = check("reference_agreement", fake_grpo(flaw), grpo_case(1, 2)).violation;
    ASSERT_TRUE(violation);
    for (const double number :
         {violation->actual, static_cast<double>(violation->expected), violation->allowed,
          violation->half_width, violation->error_ratio}) {
      EXPECT_EQ(number, 0.0);
    }
    EXPECT_EQ(violation->place.index, -1);
    EXPECT_EQ(violation->place.sequence, -1);
    EXPECT_EQ(violation->place.token, -1);
  }
}

TEST(Verdict, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Verdict verdict : kAllVerdicts) names.insert(name(verdict));
  EXPECT_EQ(names, (std::set<std::string_view>{"held", "violated", "vacuous", "skipped", "note"}));
}

}  // namespace
}  // namespace lossgate::properties
