// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/probes.h"

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

/// A divergence whose gradient in 16 bits is nothing like the formula's.
impl::Implementation lost_in_16_bits() {
  return answering("jsd", nullptr, [](const Case& c, LossResult& result) {
    if (size_of(c.batch.at("student_logits").dtype) > 2) return;
    change_each(output(result, "gradient.student_logits"), [](double x) { return 3.0 * x; });
  });
}

TEST(ProbeFormat, SeesAGradientThatIsRightOfTheSameNumbersInAWiderFormat) {
  const char* because = "the gradient of the same numbers in a wider format is right";
  auto fake = lost_in_16_bits();
  expect_shown(fake, ordinary_case("jsd", Dtype::bf16), "narrow arithmetic", because);
  // Who declares 16 bits computes in no narrower format.
  fake.arithmetic = [declared = fake.arithmetic](Dtype stored) {
    return plain_arithmetic(stored, declared(stored).form);
  };
  expect_shown(fake, ordinary_case("jsd", Dtype::bf16), "cancellation", because);
}

TEST(ProbeFormat, SaysNothingOfAGradientThatIsAsWrongThere) {
  const auto fake = answering("jsd", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.student_logits"), [](double x) { return 3.0 * x; });
  });
  EXPECT_FALSE(speaks(probe_format, fake, ordinary_case("jsd", Dtype::bf16)));
}

}  // namespace
}  // namespace lossgate::properties
