// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// All of the answer times what `factor` makes of the case.
impl::Implementation times(double (*factor)(const Case&)) {
  return answering("cross_entropy", nullptr, [factor](const Case& c, LossResult& result) {
    for (Output& each : result.outputs) {
      change_each(each.tensor, [&](double x) { return factor(c) * x; });
    }
  });
}

TEST(ProbeFactor, NamesTheNumberThatAllIsMultipliedBy) {
  expect_shown(times([](const Case&) { return 1.4426950408889634; }),
               ordinary_case("cross_entropy"), "disagrees with the formula",
               "all of it is the formula's times 1.442695");
}

TEST(ProbeFactor, SaysNothingOfACountOrOfALossAlone) {
  const Case c = ordinary_case("cross_entropy");
  const auto of_tokens =
      times([](const Case& x) { return 1.1 * static_cast<double>(x.shape[Axis::tokens]); });
  EXPECT_FALSE(speaks(probe_factor, of_tokens, c));
  const auto of_loss = answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "loss"), [](double x) { return 1.4426950408889634 * x; });
  });
  EXPECT_FALSE(speaks(probe_factor, of_loss, c));
}

}  // namespace
}  // namespace lossgate::properties
