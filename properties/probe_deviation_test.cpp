// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// What a distance is divided by, of so many numbers whose squares add up to that.
using Divisor = double (*)(double squares, double n, double epsilon);

double as_whitened(double squares, double n, double epsilon) {
  return std::sqrt(squares / (n - 1.0) + epsilon);
}
double counted_by_all(double squares, double n, double epsilon) {
  return std::sqrt(squares / n + epsilon);
}
double plus_epsilon(double squares, double n, double epsilon) {
  return std::sqrt(squares / (n - 1.0)) + epsilon;
}

double least_root(double squares, double n, double epsilon) {
  return std::max(std::sqrt(squares / (n - 1.0)), epsilon);
}
double least_variance(double squares, double n, double epsilon) {
  return std::sqrt(std::max(squares / (n - 1.0), epsilon));
}

/// The formula's numbers with another divisor, of one group.
impl::Implementation divided_by(const std::string& loss, const char* field, const char* answer,
                                Divisor right, Divisor other) {
  return answering(loss, nullptr, [=](const Case& c, LossResult& result) {
    const Tensor& numbers = c.batch.at(field);
    const bool whitens = loss == "whitening";
    std::vector<std::int64_t> counted;
    for (std::int64_t i = 0; i < numbers.size(); ++i) {
      if (!whitens || c.batch.at("mask").at(i) != 0.0) counted.push_back(i);
    }
    const auto n = static_cast<double>(counted.size());
    double mean = 0.0, squares = 0.0;
    for (const std::int64_t i : counted) mean += numbers.at(i) / n;
    for (const std::int64_t i : counted) squares += std::pow(numbers.at(i) - mean, 2.0);
    if (n < 2.0) return;
    const double epsilon = c.spec.number("epsilon");
    const double factor = right(squares, n, epsilon) / other(squares, n, epsilon);
    const bool shifts = !whitens || c.spec.number("shift_mean") != 0.0;
    Tensor& out = output(result, answer);
    for (const std::int64_t i : counted) {
      const double centre = shifts ? 0.0 : mean;
      out.set(i, centre + factor * (out.at(i) - centre));
    }
  });
}

TEST(ProbeDeviation, NamesTheCountOfItsSquares) {
  const auto biased = divided_by("whitening", "advantage", "whitened", as_whitened, counted_by_all);
  for (const double shift_mean : {0.0, 1.0}) {
    Case c = ordinary_case("whitening");
    c.spec.set("shift_mean", shift_mean);
    expect_shown(biased, c, "wrong deviation",
                 "its squares are divided by n where the formula has n - 1");
  }
}

TEST(ProbeDeviation, NamesWhereItsEpsilonStands) {
  Case c = ordinary_case("whitening");
  c.spec.set("epsilon", 0.01);
  expect_shown(divided_by("whitening", "advantage", "whitened", as_whitened, plus_epsilon), c,
               "wrong deviation",
               "epsilon is added to the root where the formula adds it to the variance");
  Case rewards = ordinary_case("group_advantage");
  rewards.spec.set("epsilon", 0.01);
  change_each(rewards.batch.at("group"), [](double) { return 0.0; });
  expect_shown(divided_by("group_advantage", "reward", "advantage", plus_epsilon, as_whitened),
               rewards, "wrong deviation",
               "epsilon is added to the variance where the formula adds it to the root");
}

TEST(ProbeDeviation, NamesTheFloorThatItsEpsilonIs) {
  for (const double epsilon : {1e-8, 0.01}) {
    const auto of_all = [&](Divisor other, const std::string& because) {
      Case c = ordinary_case("whitening");
      c.spec.set("epsilon", epsilon);
      expect_shown(divided_by("whitening", "advantage", "whitened", as_whitened, other), c,
                   "wrong deviation", because);
    };
    const auto of_group = [&](Divisor other, const std::string& because) {
      Case c = ordinary_case("group_advantage");
      c.spec.set("epsilon", epsilon);
      change_each(c.batch.at("group"), [](double) { return 0.0; });
      expect_shown(divided_by("group_advantage", "reward", "advantage", plus_epsilon, other), c,
                   "wrong deviation", because);
    };
    of_all(least_root, "epsilon is a floor of the root where the formula adds it to the variance");
    of_all(least_variance, "epsilon is a floor of the variance where the formula adds it");
    of_group(least_root, "epsilon is a floor of the deviation where the formula adds it");
    of_group(least_variance,
             "epsilon is a floor of the variance where the formula adds it to the root");
  }
}

TEST(ProbeDeviation, NamesTheCountOfAGroupWhereNoOptionIsMisread) {
  for (const auto& [own, other, because] :
       {std::tuple("std", "population_std",
                   "its squares are divided by n where the formula has n - 1"),
        std::tuple("population_std", "std",
                   "its squares are divided by n - 1 where the formula has n")}) {
    reference::Loss pinned = *reference::find_loss("group_advantage");
    for (Option& option : pinned.signature.options) {
      if (option.name == "scale") option.choices = {own};
    }
    Case c = ordinary_case("group_advantage");
    c.spec.set("scale", std::string(own));
    const auto fake = answering(
        "group_advantage", [word = std::string(other)](Case& x) { x.spec.set("scale", word); });
    CaseStudy study(pinned, c);
    const Violation violation{};
    Suspect suspect(study, fake, violation);
    const Opinion opinion = probe_deviation(suspect);
    ASSERT_TRUE(opinion) << own;
    EXPECT_EQ(opinion->cause, "wrong deviation");
    EXPECT_EQ(opinion->because, because);
    EXPECT_FALSE(speaks(probe_deviation, fake, c)) << "whoever may ask for both is misread";
  }
}

TEST(ProbeDeviation, NamesTheCountOfRewardsThatAreZeroOrOne) {
  const auto binary = answering("group_advantage", [](Case& c) {
    const Tensor& reward = c.batch.at("reward");
    bool all = true;
    for (std::int64_t s = 0; s < reward.size(); ++s) {
      all &= reward.at(s) == 0.0 || reward.at(s) == 1.0;
    }
    if (all) c.spec.set("scale", "population_std");
  });
  Case c = ordinary_case("group_advantage");
  Tensor& reward = c.batch.at("reward");
  for (std::int64_t s = 0; s < reward.size(); ++s) reward.set(s, static_cast<double>(s % 2));
  expect_shown(
      binary, c, "wrong deviation",
      "of rewards that are 0 or 1, its squares are divided by n where the formula has n - 1");
}

/// Whitening that hands on what is all the same, or has another number for it where `also` says so.
impl::Implementation handing_on_equals(bool (*also)(const Case&) = nullptr) {
  return answering("whitening", nullptr, [=](const Case& c, LossResult& result) {
    const Tensor& numbers = c.batch.at("advantage");
    double low = HUGE_VAL, high = -HUGE_VAL;
    at_positions(c, true, [&](std::int64_t p) {
      low = std::fmin(low, numbers.at(p)), high = std::fmax(high, numbers.at(p));
    });
    if (low != high && !(also && also(c))) return;
    at_positions(c, true, [&](std::int64_t p) { output(result, "whitened").set(p, high); });
  });
}

TEST(ProbeDeviation, NamesWhatBecomesOfNumbersThatAreAllTheSame) {
  Case c = ordinary_case("whitening");
  at_positions(c, true, [&](std::int64_t p) { c.batch.at("advantage").set(p, 1.0); });
  expect_shown(handing_on_equals(), c, "wrong deviation",
               "wrong where numbers are all the same, whose deviation is 0, and right where they "
               "are not");
}

TEST(ProbeDeviation, BlamesNoEqualNumbersForWhatIsWrongOfOthers) {
  const auto far = [](const Case& c) { return c.batch.at("advantage").at(0) > 8.0; };
  Case c = ordinary_case("whitening");
  c.batch.at("advantage").set(0, 9.0);
  EXPECT_FALSE(speaks(probe_deviation, handing_on_equals(far), c));
}

TEST(ProbeDeviation, SaysNothingOfAnotherFactor) {
  const auto halved = answering("whitening", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "whitened"), [](double x) { return 0.5 * x; });
  });
  EXPECT_FALSE(speaks(probe_deviation, halved, ordinary_case("whitening")));
}

}  // namespace
}  // namespace lossgate::properties
