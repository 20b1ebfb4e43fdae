// SPDX-License-Identifier: Apache-2.0
#include "ci/made_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "corpora/files.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

/// A divisor without a floor on an ordinary case, on which it is right.
struct Failing {
  Failing() {
    properties::CaseStudy study(loss, c);
    properties::Evaluation evaluation(study, faulty);
    violation = property.check(evaluation).violation.value();
  }

  std::optional<Case> made() const { return made_case(loss, faulty, property, c, violation); }

  const reference::Loss& loss = *reference::find_loss("grpo");
  const impl::Implementation& faulty =
      *std::ranges::find_if(impl::catalog(true), [](const impl::Implementation& one) {
        return one.loss == "grpo" && one.name == "divisor_without_floor";
      });
  const properties::Property& property = *properties::find_property("empty_is_zero");
  const Case c = corpora::read_case_file(LOSSGATE_SOURCE_DIR "/corpora/seeds/grpo/ragged-rows.case",
                                         reference::find_signature);
  properties::Violation violation;
};

TEST(MadeCase, IsTheEmptyBatchThatAPropertyMakesOfAnOrdinaryOne) {
  const Failing failing;
  ASSERT_TRUE(is_of_made_case(failing.property));
  const auto made = failing.made();
  ASSERT_TRUE(made);
  const auto counts = [](const Tensor& mask) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < mask.size(); ++i) count += mask.at(i) != 0.0;
    return count;
  };
  const std::string& mask = failing.loss.signature.mask;
  EXPECT_GT(counts(failing.c.batch.at(mask)), 0);
  EXPECT_EQ(counts(made->batch.at(mask)), 0);
}

TEST(MadeCase, IsNoneWhereTheViolationDoesNotShowAgain) {
  Failing other_number, other_formula, no_answer;
  other_number.violation.actual = 0.25;
  EXPECT_FALSE(other_number.made());
  other_formula.violation.expected = 0.25L;
  EXPECT_FALSE(other_formula.made());
  no_answer.violation.place.output.clear();
  EXPECT_FALSE(no_answer.made()) << "it does answer";
}

TEST(MadeCase, IsOfNoPropertyThatComparesSeveralCalls) {
  for (const char* name : {"masked_positions_inert", "padding_invariance", "no_laundering"}) {
    EXPECT_FALSE(is_of_made_case(*properties::find_property(name))) << name;
  }
}

}  // namespace
}  // namespace lossgate::ci
