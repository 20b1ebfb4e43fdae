// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// Of which one fits and two do not, squared and halved, in a format that ends at kEnd.
constexpr double kFar = 300.0, kEnd = 65504.0;

/// Terms are added up in a format that ends there.
impl::Implementation added_up_in_f16() {
  return answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    double sum = 0.0;
    at_positions(c, true, [&](std::int64_t p) { sum += output(result, "per_token").at(p); });
    if (sum > kEnd) output(result, "loss").set(0, HUGE_VAL);
  });
}

/// Values that far from their returns, at these positions.
Case far_at(const std::vector<std::int64_t>& positions) {
  Case c = ordinary_case("value_clip");
  c.spec.reduction = Reduction::token_mean;
  c.spec.set("value_clip", None{});
  for (const std::int64_t p : positions) {
    c.batch.at("value").set(p, c.batch.at("return").at(p) + kFar);
  }
  return c;
}

TEST(ProbeSum, NamesTheSumOfTermsOfWhichEachFits) {
  const std::int64_t third = 2 * far_at({}).shape[Axis::tokens];
  expect_shown(added_up_in_f16(), far_at({0, third}), "overflow of a square or sum",
               "each half of 4 sequences has its number alone, and one of them twice has none");
  expect_shown(added_up_in_f16(), far_at({0, 1}), "overflow of a square or sum",
               "each half of 2 tokens has its number alone, and one of them twice has none");
}

TEST(ProbeSum, NamesTheSumOfManyTerms) {
  Case c = far_at({});
  Tensor& value = c.batch.at("value");
  at_positions(c, true, [&](std::int64_t p) { value.set(p, c.batch.at("return").at(p) + 50.0); });
  const std::vector<std::int64_t> rows(40, 0);
  const Case many = batch_of(*reference::find_signature("value_clip"), c, rows);
  EXPECT_TRUE(speaks(probe_sum, added_up_in_f16(), many));
}

TEST(ProbeSum, NamesASumThatRoundsPlainNumbersToo) {
  const impl::Implementation overflows = added_up_in_f16();
  const auto rounds = answering("value_clip", nullptr, [&](const Case& c, LossResult& result) {
    result = overflows.evaluate(*reference::find_signature("value_clip"), c);
    change_each(output(result, "loss"), [](double x) { return x * (1.0 + 0x1p-9); });
  });
  EXPECT_EQ(diagnosed(rounds, far_at({0, 1})).cause, "overflow of a square or sum");
}

TEST(ProbeSum, SaysNothingOfATermThatOverflows) {
  const auto square = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      const bool fits = output(result, "per_token").at(p) < 0.5 * kEnd;
      if (!fits) output(result, "loss").set(0, HUGE_VAL);
    });
  });
  EXPECT_TRUE(speaks(probe_sum, added_up_in_f16(), far_at({0, 1})));
  EXPECT_FALSE(speaks(probe_sum, square, far_at({0, 1})));
}

TEST(ProbeSum, SaysNothingOfWhatUnlikeTermsDoToEachOther) {
  const auto one_maximum = answering("cross_entropy", nullptr, [](const Case& c, LossResult& r) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    double least = HUGE_VAL, most = -HUGE_VAL;
    at_positions(c, true, [&](std::int64_t p) {
      double own = -HUGE_VAL;
      for (std::int64_t v = 0; v < vocab; ++v) own = std::max(own, logits.at(p * vocab + v));
      least = std::min(least, own), most = std::max(most, own);
    });
    if (most - least > 700.0) output(r, "loss").set(0, kNan);
  });
  Case c = ordinary_case("cross_entropy");
  for (std::int64_t v = 0; v < c.shape[Axis::vocab]; ++v) {
    c.batch.at("logits").set(v, c.batch.at("logits").at(v) + 1000.0);
  }
  EXPECT_FALSE(speaks(probe_sum, one_maximum, c));
}

TEST(ProbeSum, SaysNothingOfASequenceWhereNothingCounts) {
  const auto divided = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t tokens = c.shape[Axis::tokens];
    std::vector<bool> counts(static_cast<std::size_t>(c.shape[Axis::sequences]), false);
    at_positions(c, true,
                 [&](std::int64_t p) { counts[static_cast<std::size_t>(p / tokens)] = true; });
    if (std::ranges::count(counts, false) > 0) output(result, "loss").set(0, kNan);
  });
  Case c = far_at({});
  for (std::int64_t t = 0; t < c.shape[Axis::tokens]; ++t) c.batch.at("mask").set(t, 0.0);
  EXPECT_FALSE(speaks(probe_sum, divided, c));
}

}  // namespace
}  // namespace lossgate::properties
