// SPDX-License-Identifier: Apache-2.0
#include "fuzz/turn.h"

#include <gtest/gtest.h>

#include <set>

#include "fuzz/acceptance.h"
#include "fuzz/census.h"
#include "fuzz/fake_signatures.h"

namespace lossgate::fuzz {
namespace {

constexpr int kDraws = 40, kTurns = 200;

/// The shares that each place of a turn is dealt, draw by draw.
std::vector<std::vector<std::uint64_t>> shares(std::uint64_t seed) {
  std::vector<std::vector<std::uint64_t>> of_place(Turn::kPlaces);
  for (std::size_t place = 0; place < Turn::kPlaces; ++place) {
    Dealer dealer({.seed = seed, .place = place});
    for (int i = 0; i < kDraws; ++i) of_place[place].push_back(dealer.next());
  }
  return of_place;
}

TEST(Dealer, GivesEveryShareOfEveryDrawToOnePlace) {
  for (std::uint64_t seed = 0; seed < kTurns; ++seed) {
    const auto of_place = shares(seed);
    for (int draw = 0; draw < kDraws; ++draw) {
      std::set<std::uint64_t> dealt;
      for (const auto& place : of_place) dealt.insert(place[static_cast<std::size_t>(draw)]);
      ASSERT_EQ(dealt.size(), Turn::kPlaces);
      ASSERT_LT(*dealt.rbegin(), Turn::kPlaces);
    }
  }
}

TEST(Dealer, BringsTheHalvesOfTwoDrawsTogether) {
  int missing = 0, pairs = 0;
  for (std::uint64_t seed = 0; seed < kTurns; ++seed) {
    const auto of_place = shares(seed);
    for (std::size_t a = 0; a < 16; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        std::set<std::pair<bool, bool>> met;
        for (const auto& place : of_place) met.insert({place[a] < 4, place[b] < 4});
        missing += met.size() < 4;
        ++pairs;
      }
    }
  }
  EXPECT_LT(missing, pairs / 1000);  // of random orders 1 in 35
}

TEST(Turn, LeavesTheChancesOfADrawAsTheyWere) {
  int low = 0;
  for (std::uint64_t i = 0; i < 8000; ++i) {
    Choices choices = case_choices(3, "any", Dtype::f32, Profile::hostile, i);
    choices.enter("axis");
    low += choices.real(0.0, 1.0) < 0.3;
  }
  EXPECT_NEAR(low, 2400, 60);
}

TEST(Turn, HoldsTwoCasesOfEachDtypeAndEightOfOne) {
  const auto third = [](Dtype dtype, std::uint64_t index) {
    Choices choices = case_choices(9, "any", dtype, Profile::hostile, index);
    choices.enter("axis");
    return choices.integer(0, 7);
  };
  std::set<std::int64_t> of_all, of_one;
  for (std::uint64_t index = 0; index < 2; ++index) {
    for (const Dtype dtype : kFloats) of_all.insert(third(dtype, index));
  }
  for (std::uint64_t index = 0; index < 8; ++index) of_one.insert(third(Dtype::f32, index));
  EXPECT_EQ(of_all.size(), 8u);
  EXPECT_EQ(of_one.size(), 8u);
}

TEST(Turn, LeavesBenignCasesAlone) {
  Choices alone(case_seed(1, "fake_policy", Dtype::f32, 5));
  Choices benign = case_choices(1, "fake_policy", Dtype::f32, Profile::benign, 5);
  const LossSignature signature = fake_policy_loss();
  const Case c = draw_case(signature, Dtype::f32, Profile::benign, benign);
  EXPECT_EQ(c.batch, draw_case(signature, Dtype::f32, Profile::benign, alone).batch);
}

}  // namespace
}  // namespace lossgate::fuzz
