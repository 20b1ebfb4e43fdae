// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/given_one_token.h"

namespace lossgate::reference {
namespace {

TEST(CrossEntropy, OfSoftTargetsMayBeOneSumThatRoundsAtTheSizeOfItsLargestTerm) {
  constexpr int kVocab = 128, kTaken = 5;
  constexpr float kSmoothing = 0.2395F;
  const Loss& loss = *find_loss("cross_entropy");
  Case c = zero_case(loss.signature, 1, 1, kVocab);
  c.spec.set("label_smoothing", static_cast<double>(kSmoothing));
  c.batch.at("label").set(0, kTaken);
  c.batch.at("logits").set(kTaken, -1000.0);
  const float normaliser = std::log(static_cast<float>(kVocab - 1));
  const float share = kSmoothing / kVocab;
  float together = 0.0F;
  for (int v = 0; v < kVocab; ++v) {
    const float l = (v == kTaken ? -1000.0F : 0.0F) - normaliser;
    together -= (v == kTaken ? (1.0F - kSmoothing) + share : share) * l;
  }
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  arithmetic.sum.order = SumOrder::sequential;
  const OneToken kept(c, arithmetic);
  const double off = std::fabs(together - static_cast<double>(kept.term.v));
  EXPECT_GT(off, 2e-3) << "each addition after the taken token's rounds at its size";
  EXPECT_LE(off, kThreshold * kept.term.err);
}

TEST(CrossEntropy, MayHaveItsSlopeAtTheTakenTokenFromOne) {
  // An impossible taken token of a uniform target over 31: -1/31, or -1 + (1 - 1/31).
  constexpr int kVocab = 31;
  const Loss& loss = *find_loss("cross_entropy");
  Case c = zero_case(loss.signature, 1, 1, kVocab);
  c.spec.set("label_smoothing", 1.0);
  c.batch.at("label").set(0, kVocab - 1);
  c.batch.at("logits").set(kVocab - 1, -1000.0);
  const float share = 1.0F / kVocab;
  const double off = std::fabs((-1.0F + (1.0F - share)) + 1.0 / kVocab);
  const Arithmetic open = plain_arithmetic(Dtype::f32, ""),
                   stable = plain_arithmetic(Dtype::f32, kShiftedForm);
  EXPECT_GT(off, kThreshold * OneToken(c, stable).gradient.err);
  EXPECT_LE(off, kThreshold * OneToken(c, open).gradient.err);
}

}  // namespace
}  // namespace lossgate::reference
