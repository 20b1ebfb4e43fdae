// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "properties/fake_answer.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

using Baseline = double (*)(double sum, double own, double n);

double mean_of_all(double sum, double, double n) { return sum / n; }
double mean_of_others(double sum, double own, double n) { return (sum - own) / (n - 1.0); }
double others_by_all(double sum, double own, double n) { return (sum - own) / n; }
double all_by_others(double sum, double, double n) { return sum / (n - 1.0); }

/// The formula's advantage with another baseline, whatever divides it.
impl::Implementation subtracting(Baseline other) {
  return answering("group_advantage", nullptr, [other](const Case& c, LossResult& result) {
    const Tensor &reward = c.batch.at("reward"), &group = c.batch.at("group");
    std::map<std::int64_t, std::pair<double, double>> sums;
    for (std::int64_t s = 0; s < reward.size(); ++s) {
      auto& [sum, n] = sums[group.integer_at(s)];
      sum += reward.at(s), n += 1.0;
    }
    const bool of_all = c.spec.choice("baseline") == "mean";
    Tensor& advantage = output(result, "advantage");
    for (std::int64_t s = 0; s < reward.size(); ++s) {
      const auto& [sum, n] = sums[group.integer_at(s)];
      const double own = reward.at(s);
      const double right = own - (of_all ? mean_of_all : mean_of_others)(sum, own, n);
      if (n < 2.0 || right == 0.0) continue;
      advantage.set(s, advantage.at(s) * (own - other(sum, own, n)) / right);
    }
  });
}

Case with_baseline(const std::string& baseline, const std::string& scale) {
  Case c = ordinary_case("group_advantage");
  c.spec.set("baseline", baseline);
  c.spec.set("scale", scale);
  return c;
}

TEST(ProbeBaseline, NamesWhoseMeanIsSubtractedAndByWhichCount) {
  const std::pair<Baseline, const char*> of_leave_one_out[] = {
      {others_by_all, "the sum of the others is divided by the number of all"},
      {all_by_others, "the sum of all is divided by the number of the others"},
      {mean_of_all,
       "the baseline takes in the sample itself: all is (n - 1) / n of what it should be"}};
  for (const char* scale : {"unscaled", "std"}) {
    for (const auto& [other, because] : of_leave_one_out) {
      expect_shown(subtracting(other), with_baseline("leave_one_out", scale), "wrong baseline",
                   because);
    }
    expect_shown(
        subtracting(mean_of_others), with_baseline("mean", scale), "wrong baseline",
        "the baseline leaves out the sample itself: all is n / (n - 1) of what it should be");
  }
}

TEST(ProbeBaseline, SaysWhatAFactorOfCountsIsAsWell) {
  // Less the mean of all is (n - 1) / n of what is less that of the others.
  const auto scaled = answering("group_advantage", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& group = c.batch.at("group");
    for (std::int64_t s = 0; s < group.size(); ++s) {
      double n = 0.0;
      for (std::int64_t other = 0; other < group.size(); ++other) {
        n += group.at(other) == group.at(s);
      }
      Tensor& advantage = output(result, "advantage");
      if (n > 1.0) advantage.set(s, advantage.at(s) * (n - 1.0) / n);
    }
  });
  expect_shown(scaled, with_baseline("leave_one_out", "unscaled"), "wrong baseline",
               "the baseline takes in the sample itself: all is (n - 1) / n of what it should be");
}

TEST(ProbeBaseline, SaysNothingOfAnotherMultipleOfTheAdvantage) {
  const auto halved = answering("group_advantage", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "advantage"), [](double x) { return 0.5 * x; });
  });
  EXPECT_NE(diagnosed(halved, with_baseline("leave_one_out", "unscaled")).cause, "wrong baseline");
}

TEST(ProbeBaseline, SaysNothingOfWhatIsSoOfOneBatchAlone) {
  const Case c = with_baseline("leave_one_out", "unscaled");
  const auto of_one_batch =
      answering("group_advantage", nullptr,
                [known = c.batch.at("reward"), other = subtracting(mean_of_all)](
                    const Case& asked, LossResult& result) {
                  if (asked.batch.at("reward") == known) {
                    result = other.evaluate(*reference::find_signature("group_advantage"), asked);
                  } else {
                    change_each(output(result, "advantage"), [](double x) { return 2.0 * x; });
                  }
                });
  EXPECT_THAT(diagnosed(of_one_batch, c).cause,
              testing::Not(testing::AnyOf("held", "wrong baseline")));
}

TEST(ProbeBaseline, LeavesAnotherDeviationToItsOption) {
  const auto population = answering("group_advantage", [](Case& c) {
    if (c.spec.choice("scale") == "std") c.spec.set("scale", std::string("population_std"));
  });
  EXPECT_EQ(diagnosed(population, with_baseline("leave_one_out", "std")).cause, "option misread");
}

/// Whether a reward is compared with another one, of its group or not.
using Beside = bool (*)(bool group, bool itself);

bool of_group(bool group, bool) { return group; }
bool of_others(bool group, bool itself) { return group && !itself; }
bool of_batch(bool, bool) { return true; }

/// Mean and deviation, by one less than there are, of those beside the sample.
std::pair<double, double> moments(const Case& c, std::int64_t s, Beside beside) {
  const Tensor &reward = c.batch.at("reward"), &group = c.batch.at("group");
  double n = 0.0, sum = 0.0, squares = 0.0;
  const auto of_each = [&](auto add) {
    for (std::int64_t other = 0; other < reward.size(); ++other) {
      if (beside(group.at(other) == group.at(s), other == s)) add(reward.at(other));
    }
  };
  of_each([&](double x) { n += 1.0, sum += x; });
  of_each([&](double x) { squares += (x - sum / n) * (x - sum / n); });
  return {sum / n, n < 2.0 ? 0.0 : std::sqrt(squares / (n - 1.0))};
}

/// What is not alone is compared with the mean of some and divided by the deviation of some.
impl::Implementation comparing(Beside mean_of, Beside deviation_of) {
  return answering("group_advantage", nullptr, [=](const Case& c, LossResult& result) {
    Tensor& advantage = output(result, "advantage");
    for (std::int64_t s = 0; s < advantage.size(); ++s) {
      if (moments(c, s, of_group).second == 0.0) continue;
      const double mean = moments(c, s, mean_of).first;
      const double deviation = moments(c, s, deviation_of).second;
      const double divisor = deviation + c.spec.number("epsilon");
      advantage.set(s, (c.batch.at("reward").at(s) - mean) / divisor);
    }
  });
}

TEST(ProbeBaseline, NamesWhoseRewardsASampleIsComparedWith) {
  Case c = with_baseline("mean", "std");
  for (const std::int64_t s : {0, 1, 2}) c.batch.at("group").set(s, 0.0);
  EXPECT_EQ(diagnosed(comparing(of_group, of_group), c).cause, "held");
  expect_shown(comparing(of_group, of_batch), c, "wrong deviation",
               "the deviation is that of the whole batch");
  expect_shown(comparing(of_group, of_others), c, "wrong deviation",
               "the deviation leaves out the sample itself");
  expect_shown(comparing(of_batch, of_group), c, "wrong baseline",
               "the baseline is that of the whole batch");
  expect_shown(comparing(of_batch, of_batch), c, "wrong baseline",
               "baseline and deviation are those of the whole batch");
}

TEST(ProbeBaseline, SaysNothingOfADeviationWhereNothingIsDivided) {
  const auto misread =
      answering("group_advantage", [](Case& c) { c.spec.set("singleton", "zero"); });
  Case c = with_baseline("mean", "unscaled");
  c.spec.set("singleton", "reward");
  EXPECT_FALSE(speaks(probe_baseline, misread, c));
  EXPECT_EQ(diagnosed(misread, c).cause, "option misread");
}

}  // namespace
}  // namespace lossgate::properties
