// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Sequences 0 and 2, 1 and 3 answer the same prompt.
Case interleaved() {
  Case c = ordinary_case("group_advantage");
  Tensor& group = c.batch.at("group");
  for (std::int64_t s = 0; s < group.size(); ++s) group.set(s, static_cast<double>(s % 2));
  return c;
}

/// Right wherever two positions count, or more.
impl::Implementation without_number_of_one() {
  return answering("whitening", nullptr, [](const Case& c, LossResult& result) {
    std::int64_t valid = 0, last = -1;
    at_positions(c, true, [&](std::int64_t p) { ++valid, last = p; });
    if (valid == 1) {
      output(result, "whitened").set(last, std::numeric_limits<double>::quiet_NaN());
    }
  });
}

TEST(ProbeStatistics, NamesAnEmptyDivisorWhereOneNumberAloneHasNone) {
  Case c = ordinary_case("whitening");
  Tensor& mask = c.batch.at("mask");
  for (std::int64_t p = 1; p < mask.size(); ++p) mask.set(p, 0.0);
  mask.set(0, 1.0);
  expect_shown(without_number_of_one(), c, "empty divisor",
               "right where each sequence stands twice: one number has no deviation");
}

TEST(ProbeStatistics, BlamesNoEmptyDivisorForANumber) {
  const impl::Implementation alone = without_number_of_one();
  const auto too_large = answering("whitening", nullptr, [&](const Case& c, LossResult& result) {
    result = alone.evaluate(*reference::find_signature("whitening"), c);
    change_each(output(result, "whitened"), [](double x) { return 1.5 * x; });
  });
  EXPECT_NE(diagnosed(too_large, ordinary_case("whitening")).cause, "empty divisor");
}

TEST(RuleC6, ACaseIsAskedWithOnePositionLeft) {
  const Case c = ordinary_case("whitening");
  CaseStudy study(*reference::find_loss("whitening"), c);
  const impl::Implementation subject = without_number_of_one();
  Evaluation evaluation(study, subject);
  const Outcome outcome = find_property("empty_is_zero")->check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "empty divisor");
}

/// Whose numbers are off by these shares where they lie far from 0, and elsewhere.
impl::Implementation off_by(double far, double near) {
  return answering("whitening", nullptr, [far, near](const Case& c, LossResult& result) {
    double sum = 0.0;
    at_positions(c, true, [&](std::int64_t p) { sum += c.batch.at("advantage").at(p); });
    const double off = std::fabs(sum) < 100.0 ? near : far;
    change_each(output(result, "whitened"), [off](double x) { return (1.0 + off) * x; });
  });
}

TEST(ProbeStatistics, NamesACancellationWhereNumbersAroundZeroAreRight) {
  Case c = ordinary_case("whitening");
  change_each(c.batch.at("advantage"), [](double x) { return x + 1e8; });
  expect_shown(off_by(-0.5, 0.0), c, "cancellation", "right where the numbers lie around 0");
  // An error that is hardly one there and hardly none here is the same error.
  EXPECT_NE(diagnosed(off_by(0x1p-9, 0x1p-20), c).cause, "cancellation");
}

TEST(ProbeStatistics, CallsNothingACancellationThatIsFarTooLargeForOne) {
  Case c = ordinary_case("whitening");
  change_each(c.batch.at("advantage"), [](double x) { return x + 100.0; });
  ASSERT_NE(diagnosed(off_by(-0.5, 0.0), c).cause, "held");
  EXPECT_NE(diagnosed(off_by(-0.5, 0.0), c).cause, "cancellation");
}

TEST(ProbeStatistics, CallNoZeroThatStandsForSomethingACancellation) {
  const auto skips_zero = answering("whitening", nullptr, [](const Case& c, LossResult& result) {
    bool any = false;
    at_positions(c, true, [&](std::int64_t p) { any |= c.batch.at("advantage").at(p) == 0.0; });
    if (any) change_each(output(result, "whitened"), [](double x) { return 0.5 * x; });
  });
  Case c = ordinary_case("whitening");
  c.batch.at("advantage").set(0, 0.0);
  EXPECT_THAT(diagnosed(skips_zero, c).cause, testing::Not(testing::AnyOf("held", "cancellation")));
}

TEST(ProbeStatistics, CallsNoBoundThatNumbersAroundZeroDoNotFeelACancellation) {
  const auto halved_far_away =
      answering("rollout_correction", nullptr, [](const Case& c, LossResult& result) {
        double farthest = 0.0;
        at_positions(c, true, [&](std::int64_t p) {
          const Batch& batch = c.batch;
          farthest = std::max(farthest, std::fabs(batch.at("old_log_prob").at(p) -
                                                  batch.at("sampler_log_prob").at(p)));
        });
        if (farthest < 20.0) return;
        change_each(output(result, "weight"), [](double x) { return 0.5 * x; });
      });
  Case c = ordinary_case("rollout_correction");
  change_each(c.batch.at("sampler_log_prob"), [](double x) { return x - 30.0; });
  ASSERT_NE(diagnosed(halved_far_away, c).cause, "held");
  EXPECT_FALSE(speaks(probe_statistics, halved_far_away, c));
  EXPECT_FALSE(speaks(probe_cancelled_deviation, halved_far_away, c));
}

/// No number where the square of the mean has none, of which a masked position that holds a 0 is
/// that far away, or `always`.
impl::Implementation lost_to_squares(bool always) {
  return answering("whitening", nullptr, [always](const Case& c, LossResult& result) {
    double sum = 0.0, count = 0.0;
    bool masked = false;
    at_positions(c, true, [&](std::int64_t p) { sum += c.batch.at("advantage").at(p), ++count; });
    at_positions(c, false, [&](std::int64_t) { masked = true; });
    if (std::isfinite(sum / count * (sum / count)) || !(masked || always)) return;
    change_each(output(result, "whitened"), [](double) { return std::nan(""); });
  });
}

TEST(ProbeStatistics, CallsNoSquareThatOverflowsACancellation) {
  Case c = ordinary_case("whitening");
  at_positions(c, true, [&](std::int64_t p) {
    Tensor& advantage = c.batch.at("advantage");
    advantage.set(p, 1e155 + 1e150 * advantage.at(p));
  });
  expect_shown(lost_to_squares(false), c, "zero times infinity",
               "right where nothing is masked, and of numbers whose squares have room");
  expect_shown(lost_to_squares(true), c, "overflow of a square or sum",
               "right of numbers whose squares have room");
}

/// No number of a batch that is longer than the given one and whose numbers lie far from 0, or
/// anywhere.
impl::Implementation lost_where_padded(const Case& given, bool anywhere) {
  const std::int64_t tokens = given.shape[Axis::tokens];
  return answering("whitening", nullptr, [=](const Case& c, LossResult& result) {
    double sum = 0.0;
    at_positions(c, true, [&](std::int64_t p) { sum += c.batch.at("advantage").at(p); });
    if (c.shape[Axis::tokens] <= tokens || (!anywhere && std::fabs(sum) < 100.0)) return;
    at_positions(c, true, [&](std::int64_t p) {
      output(result, "whitened").set(p, std::numeric_limits<double>::quiet_NaN());
    });
  });
}

TEST(ProbeCancelledDeviation, BlamesNoMaskForWhatIsRightAroundZero) {
  Case c = ordinary_case("whitening");
  change_each(c.batch.at("advantage"), [](double x) { return x + 1000.0; });
  expect_shown(lost_where_padded(c, false), c, "cancellation",
               "right where the numbers lie around 0");
  EXPECT_EQ(diagnosed(lost_where_padded(c, true), c).cause, "non-finite value behind a mask");
}

TEST(ProbeStatistics, NamesAPairingByPositionWhereGroupsSideBySideAreRight) {
  const auto blocks = answering("group_advantage", [](Case& c) {
    Tensor& group = c.batch.at("group");
    for (std::int64_t s = 0; s < group.size(); ++s) group.set(s, static_cast<double>(s / 2));
  });
  expect_shown(blocks, interleaved(), "pairing by position",
               "right where groups stand side by side and are as large as each other");
}

TEST(ProbeStatistics, AsksPairsOfTheirOwnWhereTheGivenGroupsAreSingle) {
  const auto blocks = answering("group_advantage", [](Case& c) {
    Tensor& group = c.batch.at("group");
    for (std::int64_t s = 0; s < group.size(); ++s) group.set(s, static_cast<double>(s / 2));
  });
  Case c = ordinary_case("group_advantage");
  Tensor& group = c.batch.at("group");
  for (std::int64_t s = 0; s < group.size(); ++s) group.set(s, static_cast<double>(s));
  EXPECT_EQ(diagnosed(blocks, c).cause, "pairing by position");
}

TEST(ProbeStatistics, NamesPaddingWhereOnlyAMaskMakesADifference) {
  const auto counting = answering("whitening", nullptr, [](const Case& c, LossResult& result) {
    bool masked = false;
    at_positions(c, false, [&](std::int64_t) { masked = true; });
    if (masked) change_each(output(result, "whitened"), [](double x) { return 0.5 * x; });
  });
  expect_shown(counting, ordinary_case("whitening"), "padding counted",
               "right where nothing is masked");
}

TEST(ProbeStatistics, NamesAMeanOfMeansWhereRowsOfOneLengthAreRight) {
  const auto by_rows = answering("whitening", nullptr, [](const Case& c, LossResult& result) {
    std::set<int> lengths;
    const Tensor& mask = c.batch.at("mask");
    for (std::int64_t i = 0; i < mask.size(); i += c.shape[Axis::tokens]) {
      int valid = 0;
      for (std::int64_t t = 0; t < c.shape[Axis::tokens]; ++t) valid += mask.at(i + t) != 0.0;
      lengths.insert(valid);
    }
    if (lengths.size() < 2) return;
    change_each(output(result, "whitened"), [](double x) { return x == 0.0 ? x : x + 0.25; });
  });
  expect_shown(by_rows, ordinary_case("whitening"), "mean of means",
               "right where all sequences are as long as each other");
}

TEST(ProbeStatistics, SaysNothingOfAnotherFormula) {
  const auto halved = answering("group_advantage", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "advantage"), [](double x) { return 0.5 * x; });
  });
  EXPECT_EQ(diagnosed(halved, interleaved()).cause, "disagrees with the formula");
}

}  // namespace
}  // namespace lossgate::properties
