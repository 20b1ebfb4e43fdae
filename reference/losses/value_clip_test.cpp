// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/value_clip.h"

#include <gtest/gtest.h>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

/// A value near 1000 in f32, whose target is 0, clipped at 0.2 from its old one.
OneToken near_1000(const char* clip_form, float value) {
  const Loss& loss = *find_loss("value_clip");
  Case c = zero_case(loss.signature, 1, 1);
  c.spec.reduction = Reduction::sum;
  c.spec.set("clip_form", std::string(clip_form));
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("value").set(0, value);
  c.batch.at("old_value").set(0, 1000.0);
  return OneToken(c, plain_arithmetic(Dtype::f32, ""));
}

Tracked gradient(const char* clip_form, float value) {
  return near_1000(clip_form, value).gradient;
}

TEST(ValueClip, AnIntervalReturnsWhatIsInsideAsItIs) {
  const Tracked as_it_is = near_1000("interval", 1000.05f).term,
                moved_to_and_fro = near_1000("around_old", 1000.05f).term;
  EXPECT_GT(moved_to_and_fro.err, 1.5 * as_it_is.err);
}

TEST(ValueClip, MayTakeTheTargetFromTheOldValueFirst) {
  Case c = zero_case(*find_signature("value_clip"), 1, 1);
  c.spec.reduction = Reduction::sum;
  c.spec.set("value_clip", 2.5);
  c.spec.set("clip_form", std::string("around_old"));
  c.batch.at("mask").set(0, 1.0);
  c.batch.at("value").set(0, 0.001);
  c.batch.at("old_value").set(0, -2.5);
  c.batch.at("return").set(0, 0.1);
  const double u = unit_roundoff(Dtype::f32);
  const OneToken answer(c, plain_arithmetic(Dtype::f32, ""));
  EXPECT_GE(answer.term.err, 0.99 * 0.1 * 2.6 * u) << "(old - R) + 2.5 is off by a rounding of 2.6";
  EXPECT_LE(answer.term.err, 1.3 * 0.1 * 2.6 * u);
}

TEST(ValueClip, AtAnEdgeThatIsRoundedAtTheSizeOfTheOldValueTheGradientMayFlowOrNot) {
  // Within the edge by less than half a unit in the last place of 1000.
  for (const float within : {1000.2f - 0x1p-14f, 999.8f + 0x1p-14f}) {
    const Tracked open = gradient("interval", within);
    EXPECT_GT(open.half, 100.0) << within;
    EXPECT_NEAR(static_cast<double>(open.v) + open.half, within, 1.0) << "at most all of it";
    EXPECT_NEAR(static_cast<double>(open.v) - open.half, 0.0, 1.0);
    EXPECT_LT(gradient("around_old", within).half, 1.0) << within;
    EXPECT_NEAR(static_cast<double>(gradient("around_old", within).v), within, 1.0);
  }
}

TEST(ValueClip, MayMakeItsGradientForAnUpstreamOfOne) {
  const Loss& loss = *find_loss("value_clip");
  Case c = zero_case(loss.signature, 3, 1);
  c.spec.reduction = Reduction::token_mean;
  c.spec.set("value_clip", None{});
  c.upstream = 65536.0;
  for (int s = 0; s < 3; ++s) c.batch.at("mask").set(s, 1.0);
  c.batch.at("value").set(2, 0x1p-149);  // a third of it is 0
  const OneToken kept(c, plain_arithmetic(Dtype::f32, ""));
  EXPECT_GT(kept.gradient.v, 0.0L);
  EXPECT_GE(kThreshold * kept.gradient.err, static_cast<double>(kept.gradient.v));
}

TEST(ValueClip, FarFromItsEdgesTheGradientIsOneNumber) {
  for (const char* form : {"interval", "around_old"}) {
    for (const float value : {1000.1f, 1001.0f}) EXPECT_LT(gradient(form, value).half, 1.0) << form;
    EXPECT_EQ(gradient(form, 998.0f).v, 0.0L) << form << ": the clipped square is larger";
  }
}

}  // namespace
}  // namespace lossgate::reference
