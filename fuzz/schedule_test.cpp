// SPDX-License-Identifier: Apache-2.0
#include "fuzz/schedule.h"

#include <gtest/gtest.h>

#include <set>

namespace lossgate::fuzz {
namespace {

const std::vector<bool> kFree(4, false);

TEST(Schedule, EverySearchHasOneTurnFirst) {
  Schedule schedule(4);
  std::set<std::size_t> had;
  for (int turn = 0; turn < 4; ++turn) {
    const std::size_t search = schedule.next(kFree);
    had.insert(search);
    schedule.credit(search, 1.0, 100.0, turn == 0 ? 100.0 : 0.0);
  }
  EXPECT_EQ(had.size(), 4u);
}

/// The seconds that each search gets of `total`, where this share of its cases shows something new;
/// the first asks a thousand times as fast as the others.
std::vector<double> shares(const std::vector<double>& pays, double total) {
  Schedule schedule(pays.size());
  std::vector<double> seconds(pays.size());
  for (double spent = 0.0; spent < total; spent += 2.0) {
    const std::size_t search = schedule.next(std::vector<bool>(pays.size(), false));
    seconds[search] += 2.0;
    const double cases = search == 0 ? 20'000.0 : 20.0;
    schedule.credit(search, 2.0, cases, cases * pays[search]);
  }
  return seconds;
}

TEST(Schedule, WhatPaysGetsMoreTime) {
  const std::vector<double> seconds = shares({0.001, 0.5, 0.05, 0.0}, 2000.0);
  EXPECT_GT(seconds[1], 1000.0);
  EXPECT_GT(seconds[1], 3.0 * seconds[2]);
  EXPECT_GT(seconds[1], 3.0 * seconds[0]);
}

TEST(Schedule, NobodyStarves) {
  for (const double got : shares({0.001, 0.5, 0.05, 0.0}, 20'000.0)) EXPECT_GT(got, 10.0);
}

TEST(Schedule, WhereNothingPaysEverybodyGetsTheSame) {
  for (const double got : shares({0.0, 0.0, 0.0, 0.0}, 8000.0)) {
    EXPECT_GT(got, 1500.0);
    EXPECT_LT(got, 2500.0);
  }
}

TEST(Schedule, ATakenSearchIsLeftAloneUnlessAllAre) {
  Schedule schedule(3);
  schedule.credit(0, 1.0, 100.0, 50.0);
  schedule.credit(1, 1.0, 100.0, 20.0);
  schedule.credit(2, 1.0, 100.0, 0.0);
  EXPECT_EQ(schedule.next({true, false, false}), 1u);
  EXPECT_EQ(schedule.next({true, true, true}), 0u);
}

}  // namespace
}  // namespace lossgate::fuzz
