// SPDX-License-Identifier: Apache-2.0
#include "properties/suspect.h"

#include <gtest/gtest.h>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

Dtype dtype_of(const Case& c) { return float_dtype(grpo().signature, c); }

void negate_in_f64(const Case& c, LossResult& result) {
  if (dtype_of(c) != Dtype::f64) return;
  for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return -x; });
}

Case with_another_bound(Dtype dtype) {
  Case c = ordinary_case("grpo", dtype);
  c.spec.set("clip_high", 0.4);
  return c;
}

TEST(Suspect, ExplainsNothingByWhatIsWrongInAWiderFormatAlone) {
  const auto low_for_high = [](Case& c) {
    if (dtype_of(c) == Dtype::f32) c.spec.set("clip_high", c.spec.number("clip_low"));
  };
  const auto fake = answering("grpo", low_for_high, negate_in_f64);
  EXPECT_EQ(diagnosed(fake, with_another_bound(Dtype::f32)).cause, "option misread");
  EXPECT_EQ(diagnosed(fake, with_another_bound(Dtype::f64)).cause, "wrong sign");
}

TEST(Suspect, StaysWithTheWidestFormatWhereThatOfTheCaseHidesTheFault) {
  const auto off = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    for (Output& each : result.outputs) {
      change_each(each.tensor, [](double x) { return x * (1.0 + 1e-5); });
    }
  });
  const Case c = ordinary_case("grpo", Dtype::bf16);
  CaseStudy study(grpo(), c);
  const Violation violation;
  const Suspect suspect(study, off, violation);
  EXPECT_EQ(dtype_of(*suspect.plain_case()), Dtype::f64);
}

}  // namespace
}  // namespace lossgate::properties
