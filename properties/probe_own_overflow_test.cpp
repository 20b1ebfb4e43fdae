// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

constexpr const char* kBecause =
    "plain numbers are wrong, too, and so is this one until its own size overflows";

void weigh_twice(Case& c) {
  change_each(c.batch.at("importance_weight"), [](double w) { return w * w; });
}

void weigh_more(Case& c) {
  change_each(c.batch.at("importance_weight"), [](double w) { return w + 0.5; });
}

/// NaN as soon as a log-prob that counts is as low.
ChangeAnswer no_number_below(double log_prob) {
  return [log_prob](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("log_prob").at(p) > log_prob) return;
      output(result, "loss").set(0, std::numeric_limits<double>::quiet_NaN());
    });
  };
}

TEST(ProbeOwnOverflow, BlamesTheFormulaForAWrongNumberThatOverflows) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    Case c = ordinary_case("reinforce", dtype);
    c.batch.at("importance_weight").set(0, std::sqrt(max_finite(dtype)) * 1024.0);
    expect_shown(answering("reinforce", weigh_twice), c, "disagrees with the formula", kBecause);
  }
}

TEST(ProbeOwnOverflow, BlamesTheFormulaForAnInfinityOfTheOtherSign) {
  const auto rewarded = answering(
      "dro", [](Case& c) { change_each(c.batch.at("advantage"), [](double a) { return -a; }); },
      [](const Case&, LossResult& result) {
        for (Output& each : result.outputs) change_each(each.tensor, [](double x) { return -x; });
      });
  Case c = ordinary_case("dro");
  c.batch.at("old_log_prob").set(0, -HUGE_VAL);
  expect_shown(rewarded, c, "disagrees with the formula", kBecause);
}

TEST(ProbeOwnOverflow, BlamesTheFormulaForAnInfinityThatWrongNumbersTendTo) {
  Case c = ordinary_case("reinforce");
  c.batch.at("importance_weight").set(0, 0.0);
  c.batch.at("log_prob").set(0, -HUGE_VAL);
  EXPECT_TRUE(speaks(probe_own_overflow, answering("reinforce", weigh_more), c));
}

TEST(ProbeOwnOverflow, SaysNothingOfWhatOverflowsOnTheWayToAWrongNumber) {
  Case c = ordinary_case("reinforce");
  c.batch.at("log_prob").set(0, -2000.0);
  const auto overflowing = answering("reinforce", weigh_twice, no_number_below(-1000.0));
  EXPECT_FALSE(speaks(probe_own_overflow, overflowing, c));
}

TEST(ProbeOwnOverflow, SaysNothingOfAnInfinityThatMeetsAZero) {
  Case c = ordinary_case("reinforce");
  c.batch.at("importance_weight").set(0, 0.0);
  c.batch.at("log_prob").set(0, -HUGE_VAL);
  const auto multiplied = answering("reinforce", weigh_more, no_number_below(-HUGE_VAL));
  EXPECT_FALSE(speaks(probe_own_overflow, multiplied, c));
}

TEST(ProbeOwnOverflow, SaysNothingWherePlainNumbersAreRight) {
  Case c = ordinary_case("reinforce");
  c.batch.at("importance_weight").set(0, 1e200);
  const auto of_large = answering("reinforce", [](Case& x) {
    change_each(x.batch.at("importance_weight"), [](double w) { return w > 1e3 ? w * w : w; });
  });
  EXPECT_FALSE(speaks(probe_own_overflow, of_large, c));
}

}  // namespace
}  // namespace lossgate::properties
