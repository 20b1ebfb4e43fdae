// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fuzz/domains/long_shape.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

/// The median of the positions of a hostile case.
std::int64_t usual_positions(const char* loss) {
  std::vector<std::int64_t> positions;
  for (std::uint64_t seed = 0; seed < 501; ++seed) {
    Choices choices(seed);
    const Shape shape = draw_shape(*reference::find_signature(loss), Temper::nasty, choices);
    positions.push_back(shape[Axis::sequences] * shape[Axis::tokens]);
  }
  std::ranges::nth_element(positions, positions.begin() + 250);
  return positions[250];
}

TEST(Shape, HasManyPositionsWhereNoneHasARow) {
  EXPECT_GE(usual_positions("grpo"), 64);
  EXPECT_LE(usual_positions("jsd"), usual_positions("grpo") / 2) << "each is a row of numbers";
}

TEST(Shape, IsAPositionOrTwoInAllWhereNoSequenceIsPinned) {
  const auto found_of = [](std::int64_t tokens, bool pinned) {
    LossSignature signature = *reference::find_signature("grpo");
    if (pinned) signature.pinned = {{Axis::sequences, 1}};
    int found = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      Choices choices(seed);
      const Shape shape = draw_shape(signature, Temper::nasty, choices);
      found += shape[Axis::sequences] == 1 && shape[Axis::tokens] == tokens;
    }
    return found;
  };
  for (const std::int64_t tokens : {1, 2}) {
    EXPECT_GE(found_of(tokens, false), 15) << tokens;
    EXPECT_LE(found_of(tokens, true), 150) << "no more than of any number of sequences";
  }
}

TEST(Shape, IsLongAlongOneAxisAndShortAlongTheOthers) {
  for (const char* loss : {"grpo", "cross_entropy", "sparse_jsd", "linear_grpo", "prompt_dedup"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (const Tier& tier : longest_tiers(signature)) {
      const Axis axis = tier.axis;
      Choices choices(7);
      const Shape shape = draw_long_shape(signature, tier, choices, 2);
      EXPECT_GE(shape[axis], 257) << loss << " " << name(axis);
      EXPECT_LE(work(shape), 5 << 17) << loss << " " << name(axis);
      EXPECT_GE(shape[Axis::sequences], 2) << "what is carried along shows in the second row";
      for (Axis other : kAllAxes) {
        if (other != axis) EXPECT_LE(shape[other], 257) << loss << " " << name(axis);
      }
      if (axis == Axis::support && shape[Axis::vocab] > 0) {
        EXPECT_GE(shape[Axis::vocab], shape[axis]) << "what is listed is listed once";
      }
    }
  }
}

TEST(Shape, BeginsATierFillsItOrLiesWithin) {
  const LossSignature& signature = *reference::find_signature("linear_jsd");
  for (const Tier& tier : tiers(signature)) {
    int first = 0, last = 0, within = 0;
    // Of thousands they are of any length, or a power of two: no tier besides has odd ones.
    const bool any = tier.first > kThousands && tier.every > 1;
    const std::int64_t every = any ? 1 : tier.every;
    int odd = 0, uneven = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Choices choices(seed);
      const std::int64_t extent = draw_long_shape(signature, tier, choices)[tier.axis];
      ASSERT_TRUE(extent >= tier.first && extent <= tier.last);
      ASSERT_EQ((extent - tier.first) % every, 0);
      odd += extent % 2 != 0;
      uneven += extent % 4 != 0;
      (extent == tier.first ? first : extent == tier.last ? last : within) += 1;
    }
    if (!any) EXPECT_GT(first, 10) << name(tier.axis) << " " << tier.last;
    EXPECT_GT(last, 10) << name(tier.axis) << " " << tier.last;
    if (any) EXPECT_GT(uneven, 25) << "a last few that four do not divide";
    EXPECT_EQ(odd > 0, any || tier.first % 2 != 0) << name(tier.axis) << " " << tier.last;
    if (tier.last - tier.first > 8 * tier.every) EXPECT_GT(within, 10) << tier.last;
  }
}

/// From the first to the last of all odd extents along that axis, or of all that fill blocks.
std::pair<std::int64_t, std::int64_t> reach(const LossSignature& signature, Axis axis, bool odd) {
  std::int64_t first = 0, last = 0;
  for (const Tier& tier : tiers(signature)) {
    const bool twice_odd = tier.first % 4 == 2;
    if (tier.axis != axis || twice_odd || (tier.first % 2 != 0) != odd) continue;
    if (first == 0) first = tier.first;
    if (last > 0) EXPECT_EQ(tier.first, last + tier.every) << "nothing lies between two";
    last = tier.last;
  }
  return {first, last};
}

std::vector<Axis> long_axes(const LossSignature& signature) {
  std::vector<Axis> axes;
  for (const Tier& tier : longest_tiers(signature)) axes.push_back(tier.axis);
  return axes;
}

using Reach = std::pair<std::int64_t, std::int64_t>;

TEST(Shape, HasATierForEachSizeUpToProductions) {
  const LossSignature& signature = *reference::find_signature("sparse_jsd");
  EXPECT_EQ(reach(signature, Axis::tokens, true), Reach(129, 8191));
  EXPECT_EQ(reach(signature, Axis::tokens, false), Reach(192, 65536));
  EXPECT_EQ(reach(signature, Axis::vocab, true), Reach(129, 8191));
  EXPECT_EQ(reach(signature, Axis::vocab, false), Reach(192, 262144));
  EXPECT_EQ(reach(signature, Axis::support, true), Reach(9, 255));
  EXPECT_EQ(reach(signature, Axis::support, false), Reach(12, 256));
  const LossSignature& linear = *reference::find_signature("linear_grpo");
  EXPECT_EQ(reach(linear, Axis::hidden, false), Reach(24, 16384));
}

TEST(Shape, IsNoLongerThanCallersSay) {
  LossSignature signature = *reference::find_signature("cross_entropy");
  signature.longest = {{Axis::vocab, 1000}, {Axis::tokens, 5000}};
  signature.pinned = {{Axis::sequences, 3}};
  EXPECT_EQ(long_axes(signature), (std::vector{Axis::tokens})) << "1000 are drawn besides";
  EXPECT_EQ(reach(signature, Axis::vocab, true), Reach(129, 999));
  EXPECT_EQ(reach(signature, Axis::vocab, false), Reach(192, 896));
  EXPECT_EQ(reach(signature, Axis::tokens, true), Reach(129, 4095));
  EXPECT_EQ(reach(signature, Axis::sequences, true), Reach(0, 0));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Choices choices(seed);
    EXPECT_LE(draw_shape(signature, Temper::nasty, choices)[Axis::vocab], 1000);
    const Tier longest = longest_tiers(signature).front();
    EXPECT_EQ(draw_long_shape(signature, longest, choices)[Axis::tokens], 5000);
    signature.pinned = {};
    signature.longest.emplace_back(Axis::sequences, 1);
    EXPECT_EQ(draw_long_shape(signature, longest, choices, 2)[Axis::sequences], 1);
    signature.longest.pop_back();
    signature.pinned = {{Axis::sequences, 3}};
  }
}

TEST(Shape, IsNoLongerThanAxesOfOneExtentLeaveRoomFor) {
  const auto tokens = [](const LossSignature& signature) {
    const auto all = longest_tiers(signature);
    return *std::ranges::find(all, Axis::tokens, &Tier::axis);
  };
  LossSignature signature = *reference::find_signature("cross_entropy");
  signature.pinned = {{Axis::vocab, 128}};
  EXPECT_EQ(tokens(signature).last, 66561) << "as in production";
  signature.pinned = {{Axis::vocab, 4096}};
  Choices choices(7);
  const Shape shape = draw_long_shape(signature, tokens(signature), choices, 2);
  EXPECT_LE(work(shape), 10 << 20);
  EXPECT_EQ(shape[Axis::sequences], 1);
  EXPECT_GT(tokens(signature).last, 2048);
  signature.pinned = {{Axis::vocab, 1 << 18}};
  EXPECT_EQ(long_axes(signature), std::vector<Axis>{}) << "40 tokens are no length";
}

TEST(Shape, IsMostlyAPowerOfTwoWhereBlocksAreFull) {
  const LossSignature& signature = *reference::find_signature("grpo");
  const auto all = tiers(signature);
  const auto is_full = [](const Tier& tier) {
    return tier.axis == Axis::tokens && tier.last == 2048 && tier.every > 4;
  };
  const auto full = std::ranges::find_if(all, is_full);
  ASSERT_NE(full, all.end());
  int found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Choices choices(seed);
    found += draw_long_shape(signature, *full, choices)[Axis::tokens] == 2048;
  }
  EXPECT_GE(found, 80);
  EXPECT_LE(found, 140) << "others fill blocks as well";
}

TEST(Shape, IsLongAlongAMessagesSequencesTokensAndLists) {
  const LossSignature& signature = *reference::find_signature("teacher_payload");
  EXPECT_EQ(long_axes(signature), (std::vector{Axis::sequences, Axis::tokens, Axis::support}));
}

}  // namespace
}  // namespace lossgate::fuzz
