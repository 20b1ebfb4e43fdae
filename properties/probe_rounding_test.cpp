// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// GRPO whose loss is what `spoil` makes of it, and whose gradient has one factor throughout, as a
/// rounded divisor leaves it.
impl::Implementation spoiled(double (*spoil)(double)) {
  return answering("grpo", nullptr, [spoil](const Case&, LossResult& result) {
    change_each(output(result, "loss"), spoil);
    change_each(output(result, "gradient.log_prob"), [](double x) { return x * (1.0 + 0x1p-9); });
  });
}

TEST(ProbeRounding, SeesALossThatIsRoundedBesideGradientsThatAreOffByOneFactor) {
  const auto rounded = spoiled([](double x) { return round_to(Dtype::bf16, x); });
  EXPECT_EQ(diagnosed(rounded, ordinary_case("grpo")).cause, "narrow arithmetic");
}

TEST(ProbeRounding, SaysNothingOfALossThatIsOffByAFactorToo) {
  const auto off = spoiled([](double x) { return x * (1.0 + 0x1p-8); });
  EXPECT_NE(diagnosed(off, ordinary_case("grpo")).cause, "narrow arithmetic");
}

}  // namespace
}  // namespace lossgate::properties
