// SPDX-License-Identifier: Apache-2.0
#include "ci/telling_cases.h"

#include <gtest/gtest.h>

#include <string>

#include "reference/reference.h"

namespace lossgate::ci {
namespace {

Candidate clamped(OptionValue most) {
  return {.reduction = Reduction::token_mean,
          .options = {{"kl_penalty", 0.04}, {"kl_input_clamp", std::move(most)}}};
}

/// How many of the cases have a masked position between two of a sequence that count.
int with_gaps(const char* id, Dtype dtype, const impl::Subject& subject) {
  const reference::Loss& loss = *reference::find_loss(id);
  const Formula formula(loss, plain_signature(loss, subject, dtype), dtype);
  int gaps = 0;
  for (const Case& c : telling_cases(loss, formula, {})) {
    std::string row;
    int of_case = 0;
    for (const bool counts : valid_positions(formula.signature(), c)) {
      row += counts ? '1' : '0';
      if (std::ssize(row) < c.shape[Axis::tokens]) continue;
      const auto gap = row.find("10");
      of_case |= gap != std::string::npos && row.find('1', gap + 1) != std::string::npos;
      row.clear();
    }
    gaps += of_case;
  }
  return gaps;
}

TEST(TellingCases, MaskSomethingBetweenTwoTokensUnlessCallersDoNot) {
  impl::Subject right;
  right.contract.scattered_mask = false;
  for (const char* loss : {"gae", "grpo", "jsd"}) {
    for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
      EXPECT_EQ(with_gaps(loss, dtype, {}), 2) << loss;
      EXPECT_EQ(with_gaps(loss, dtype, right), 0) << loss;
    }
  }
}

TEST(HostileCasesThatTell, ShowWhatTheFirstCandidateDoesOtherwise) {
  const reference::Loss& loss = *reference::find_loss("grpo");
  const Formula formula(loss, plain_signature(loss, {}, Dtype::f64), Dtype::f64);
  const auto told = hostile_cases_that_tell(formula, {clamped(None{}), clamped(20.0)});
  EXPECT_EQ(told.cases.size(), 2u) << "enough of them";
  EXPECT_EQ(told.apart, (std::vector{false, true}));
  for (const Case& c : told.cases) {
    EXPECT_TRUE(
        Formula::differ(formula.values(c, clamped(None{})), formula.values(c, clamped(20.0))));
  }
  const auto same = hostile_cases_that_tell(formula, {clamped(20.0), clamped(20.0)});
  EXPECT_TRUE(same.cases.empty());
  EXPECT_EQ(same.apart, (std::vector{false, false}));
  EXPECT_TRUE(hostile_cases_that_tell(formula, {clamped(20.0)}).cases.empty());
}

}  // namespace
}  // namespace lossgate::ci
