// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "fuzz/domains/advantage.h"
#include "fuzz/domains/group.h"
#include "fuzz/domains/hidden.h"
#include "fuzz/domains/layout.h"
#include "fuzz/domains/log_ratio.h"
#include "fuzz/domains/logits.h"
#include "fuzz/domains/mask.h"
#include "fuzz/domains/options.h"
#include "fuzz/domains/payload.h"
#include "fuzz/domains/reward.h"
#include "fuzz/domains/sentinel.h"
#include "fuzz/domains/shape.h"
#include "fuzz/domains/split.h"
#include "fuzz/domains/support.h"
#include "fuzz/domains/upstream.h"
#include "fuzz/domains/value.h"
#include "fuzz/edges.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

constexpr int kDraws = 2000;

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
  Choices choices(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(choices.integer(0, 255));
  return bytes;
}

/// The kinds that an axis draws within kDraws cases, from a seed and from bytes.
template <class Draw>
void expect_all_kinds(std::string_view axis, std::size_t kinds, Draw draw) {
  SCOPED_TRACE(axis);
  std::set<decltype(draw(Temper::nasty, std::declval<Choices&>()))> seeded, from_bytes;
  Choices seeds(11);
  const std::vector<std::uint8_t> bytes = random_bytes(12, 8 * kDraws);
  Choices byte_choices{std::span<const std::uint8_t>(bytes)};
  for (int i = 0; i < kDraws; ++i) {
    const Temper temper = i % 2 ? Temper::nasty : Temper::extreme;
    seeded.insert(draw(temper, seeds));
    from_bytes.insert(draw(temper, byte_choices));
  }
  EXPECT_EQ(seeded.size(), kinds);
  EXPECT_EQ(from_bytes.size(), kinds);
}

TEST(Rewards, AreEqualOrNearlyOrAlikeButForOneOrFarFromZeroOrOfSeveralKindsNowAndThen) {
  const Field field{.name = "reward", .quantity = Quantity::reward, .axes = {Axis::sequences}};
  int equal = 0, lonely = 0, offset = 0, close = 0, mixed = 0;
  Choices choices(5);
  for (int i = 0; i < 400; ++i) {
    Tensor tensor = Tensor::zeros(Dtype::f64, {6});
    draw_rewards({&field, &tensor, false}, Temper::nasty, choices);
    std::map<double, int> counts;
    double least = tensor.at(0), most = tensor.at(0);
    for (std::int64_t at = 0; at < 6; ++at) {
      ++counts[tensor.at(at)];
      least = std::min(least, tensor.at(at)), most = std::max(most, tensor.at(at));
    }
    equal += counts.size() == 1 && least != 0.0;
    lonely += counts.size() == 2 && most - least == 1.0 && least != 0.0;
    offset += std::fabs(least) > 9.0 && most - least < 10.0;
    close += least != most && most - least < 1e-4 * std::fabs(most);
    mixed += counts.size() < 6 && most - least > 100.0;
  }
  EXPECT_GT(equal, 15);
  EXPECT_GT(lonely, 5);
  EXPECT_GT(offset, 40);
  EXPECT_GT(close, 10);
  EXPECT_GT(mixed, 10);
}

TEST(Domains, EveryKindOfEveryAxisIsDrawnFromBothSources) {
  expect_all_kinds("mask", std::size(kAllMaskForms), pick_mask_form);
  expect_all_kinds("sentinel", std::size(kAllSentinels), pick_sentinel);
  expect_all_kinds("label sentinel", std::size(kAllLabelSentinels), pick_label_sentinel);
  expect_all_kinds("log-ratio", std::size(kAllLogRatios), pick_log_ratio);
  expect_all_kinds("support", std::size(kAllSupportForms), pick_support_form);
  expect_all_kinds("advantage", std::size(kAllAdvantageForms), pick_advantage_form);
  expect_all_kinds("reward", std::size(kAllRewardForms), pick_reward_form);
  expect_all_kinds("value", std::size(kAllValueGaps), pick_value_gap);
  expect_all_kinds("logits", std::size(kAllLogitForms), pick_logit_form);
  expect_all_kinds("hidden", std::size(kAllHiddenForms), pick_hidden_form);
  expect_all_kinds("group", std::size(kAllGroupForms), pick_group_form);
  expect_all_kinds("split", std::size(kAllSplitForms), pick_split_form);
  expect_all_kinds("payload", std::size(kAllDeviations), pick_deviation);
  expect_all_kinds("layout", std::size(kAllLayouts), draw_layout);
}

TEST(Groups, AreOfTwoHundredMembersAndHaveNegativeNumbersNowAndThen) {
  const Field field{.name = "group", .role = Role::group, .axes = {Axis::sequences}};
  int negative = 0, uncounted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Tensor group = Tensor::zeros(Dtype::i64, {1000});
    Column columns[] = {{&field, &group}};
    Choices choices(seed);
    draw_groups(columns, true, Temper::nasty, choices);
    std::map<std::int64_t, int> members;
    for (std::int64_t i = 0; i < group.size(); ++i) ++members[group.integer_at(i)];
    negative += members.begin()->first < 0;
    uncounted += std::ranges::any_of(members, [](const auto& of) { return of.second == 257; });
    EXPECT_FALSE(members.contains(-1)) << "which often stands for no group";
  }
  EXPECT_GT(negative, 5);
  EXPECT_GT(uncounted, 5);
}

TEST(Deal, GivesEveryKindBeforeItGivesOneAgain) {
  constexpr Share<int> kTable[] = {{0, {1, 3, 1}}, {1, {1, 0, 1}}, {2, {0, 1, 1}}, {3, {0, 9, 1}}};
  Choices choices(4);
  std::set<std::vector<int>> orders;
  Deal deal(kTable, Temper::nasty);
  for (int i = 0; i < 50; ++i) {
    const std::vector<int> round = {deal.next(choices), deal.next(choices), deal.next(choices)};
    EXPECT_EQ(std::set(round.begin(), round.end()), (std::set{0, 2, 3}));
    orders.insert(round);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Deal, GivesFirstWhatWeighsMost) {
  constexpr Share<int> kTable[] = {{0, {1, 1, 1}}, {1, {1, 8, 1}}, {2, {1, 1, 1}}};
  Choices choices(4);
  int heavy = 0;
  for (int i = 0; i < 1000; ++i) heavy += Deal(kTable, Temper::nasty).next(choices) == 1;
  EXPECT_NEAR(heavy, 800, 60);
}

TEST(Deal, GivesInAPlainCaseWhatThePlainWeightsSay) {
  constexpr Share<int> kTable[] = {{0, {8, 1, 1}}, {1, {2, 1, 1}}, {2, {0, 1, 1}}};
  Choices dealt(4), picked(4);
  Deal deal(kTable, Temper::plain);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(deal.next(dealt, i % 3 != 0), pick(kTable, Temper::plain, picked));
  }
}

TEST(Deal, GivesToWhatCountsAllKindsWhateverIsMaskedBetween) {
  constexpr Share<int> kTable[] = {{0, {1, 1, 1}}, {1, {1, 1, 1}}, {2, {1, 1, 1}}};
  Choices choices(4);
  Deal deal(kTable, Temper::nasty);
  for (int round = 0; round < 50; ++round) {
    std::set<int> given;
    for (int i = 0; i < 3; ++i) {
      given.insert(deal.next(choices, true));
      for (int masked = 0; masked < round % 5; ++masked) deal.next(choices, false);
    }
    EXPECT_EQ(given.size(), 3u);
  }
}

TEST(Column, CountsWhereOneOfItsPositionsDoes) {
  const Field field{.name = "x", .axes = {}};
  const std::vector<std::uint8_t> valid = {0, 0, 1, 0, 0, 0};  // two sequences of three tokens
  Tensor logits = Tensor::zeros(Dtype::f32, {2, 3, 5}), token = Tensor::zeros(Dtype::f32, {2, 3}),
         reward = Tensor::zeros(Dtype::f32, {2});
  const auto counts = [&](Tensor& tensor, std::int64_t first, std::int64_t run) {
    return Column{&field, &tensor, false, valid}.counts(first, run);
  };
  EXPECT_TRUE(counts(token, 2, 1));
  EXPECT_FALSE(counts(token, 1, 1));
  EXPECT_TRUE(counts(token, 0, 3));
  EXPECT_FALSE(counts(token, 3, 3));
  EXPECT_TRUE(counts(logits, 10, 5));
  EXPECT_FALSE(counts(logits, 5, 5));
  EXPECT_FALSE(counts(logits, 15, 15));
  EXPECT_TRUE(counts(reward, 0, 1));
  EXPECT_FALSE(counts(reward, 1, 1));
  EXPECT_TRUE((Column{&field, &token}.counts(0, 1))) << "nothing is said of a mask";
}

/// The decades of f32 in which no entry of an f32 tensor lies, of many that are drawn.
template <class Draw>
std::vector<int> decades_without(Draw draw) {
  std::set<int> left;
  for (int decade = 2; decade < 35; ++decade) left.insert(decade);
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Tensor tensor = Tensor::zeros(Dtype::f32, {4, 8});
    Choices choices(seed);
    draw(tensor, seed % 2 ? Temper::nasty : Temper::extreme, choices);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.at(i) != 0.0) left.erase(static_cast<int>(std::log10(std::fabs(tensor.at(i)))));
    }
  }
  return {left.begin(), left.end()};
}

TEST(Domains, NoSizeIsLeftOutBelowTheLargest) {
  const Field field{.name = "x", .axes = {Axis::sequences, Axis::tokens}};
  EdgeList edges;
  edges.add(Dtype::f32, 20.0);
  const auto beside_zero = [&](auto draw_columns) {
    return [=, &field, &edges](Tensor& tensor, Temper temper, Choices& choices) {
      Tensor first = Tensor::zeros(Dtype::f32, {4, 8});
      Column columns[] = {{&field, &first}, {&field, &tensor}};
      draw_columns(columns, edges, temper, choices);
    };
  };
  const std::vector<int> none;
  EXPECT_EQ(decades_without([&](Tensor& tensor, Temper temper, Choices& choices) {
              draw_advantages({&field, &tensor}, temper, choices);
            }),
            none);
  EXPECT_EQ(decades_without([&](Tensor& tensor, Temper temper, Choices& choices) {
              draw_rewards({&field, &tensor}, temper, choices);
            }),
            none);
  EXPECT_EQ(decades_without(beside_zero([](auto&&... all) { draw_values(all...); })), none);
  EXPECT_EQ(decades_without(beside_zero([](auto&&... all) { draw_log_probs(all...); })), none);
}

TEST(Domains, UpstreamGradientsHoldTheNastyOnes) {
  Choices choices(1);
  std::set<double> seen;
  bool negative_zero = false;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = draw_upstream(Temper::nasty, Dtype::f32, choices);
    negative_zero |= drawn == 0.0 && std::signbit(drawn);
    seen.insert(drawn);
  }
  for (double wanted : {0.0, 1.0, -1.0, 65536.0, 0x1p24, 0.5, 4096.0})
    EXPECT_TRUE(seen.contains(wanted));
  EXPECT_TRUE(negative_zero);
  EXPECT_LT(*seen.upper_bound(0.0), 1e-20);  // as tiny as an advantage over a long batch
  int ones = 0;
  for (int i = 0; i < 100; ++i) ones += draw_upstream(Temper::plain, Dtype::f16, choices) == 1.0;
  EXPECT_GT(ones, 65) << "as a trainer has it";
}

std::vector<std::uint8_t> mask_of(MaskForm form, std::int64_t sequences, std::int64_t tokens,
                                  std::uint64_t seed) {
  std::vector<std::uint8_t> valid(static_cast<std::size_t>(sequences * tokens));
  Choices choices(seed);
  draw_mask(form, sequences, tokens, choices, valid);
  return valid;
}

TEST(Mask, FormsAreWhatTheirNamesSay) {
  const auto count = [](const std::vector<std::uint8_t>& valid) {
    return std::accumulate(valid.begin(), valid.end(), 0);
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(count(mask_of(MaskForm::ones, 3, 5, seed)), 15);
    EXPECT_EQ(count(mask_of(MaskForm::zeros, 3, 5, seed)), 0);
    EXPECT_EQ(count(mask_of(MaskForm::single_token, 3, 5, seed)), 1);
    EXPECT_EQ(count(mask_of(MaskForm::one_per_row, 3, 5, seed)), 3);
    const auto right = mask_of(MaskForm::right_padding, 1, 8, seed);
    EXPECT_TRUE(std::ranges::is_sorted(right, std::greater<>()));
    EXPECT_EQ(right.front(), 1);
    const auto left = mask_of(MaskForm::left_padding, 1, 8, seed);
    EXPECT_TRUE(std::ranges::is_sorted(left));
    EXPECT_EQ(left.back(), 1);
    EXPECT_GE(count(mask_of(MaskForm::both_sides, 1, 8, seed)), 1);
    EXPECT_EQ(count(mask_of(MaskForm::one_row_empty, 1, 8, seed)), 0);
    const auto one = mask_of(MaskForm::one_row, 4, 2, seed);
    int rows = 0;
    for (std::size_t i = 0; i < 8; i += 2) rows += one[i] != 0;
    EXPECT_EQ(rows, 1);
    EXPECT_LT(count(mask_of(MaskForm::holes, 1, 8, seed)), 8);
  }
}

TEST(Split, EverySequenceIsDealtToExactlyOnePartOfAnExistingRank) {
  for (SplitForm form : kAllSplitForms) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Choices choices(seed);
      const std::int64_t sequences = choices.integer(1, 9);
      const Split split = draw_split(form, sequences, choices);
      if (form == SplitForm::whole) EXPECT_TRUE(split.whole());
      std::vector<int> dealt(static_cast<std::size_t>(sequences), split.whole() ? 1 : 0);
      for (const Split::Part& part : split.parts) {
        EXPECT_TRUE(0 <= part.rank && part.rank < split.world);
        for (std::int64_t s : part.sequences) ++dealt[static_cast<std::size_t>(s)];
      }
      EXPECT_EQ(std::ranges::count(dealt, 1), sequences);
    }
  }
}

TEST(Split, FormsAreWhatTheirNamesSay) {
  const auto is_empty = [](const Split::Part& part) { return part.sequences.empty(); };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Choices choices(seed);
    const Split halves = draw_split(SplitForm::halves, 5, choices);
    ASSERT_EQ(halves.parts.size(), 2u);
    EXPECT_EQ(halves.parts[0].sequences.size(), 3u);
    for (const Split::Part& part : draw_split(SplitForm::one_by_one, 5, choices).parts) {
      EXPECT_EQ(part.sequences.size(), 1u);
    }
    const Split sized = draw_split(SplitForm::of_one_size, 5, choices);
    for (std::size_t i = 0; i + 1 < sized.parts.size(); ++i) {
      EXPECT_EQ(sized.parts[i].sequences.size(), sized.parts[0].sequences.size());
    }
    EXPECT_LT(sized.parts.back().sequences.size(), sized.parts[0].sequences.size());
    EXPECT_TRUE(
        std::ranges::any_of(draw_split(SplitForm::empty_parts, 3, choices).parts, is_empty));
    EXPECT_TRUE(std::ranges::none_of(draw_split(SplitForm::random, 3, choices).parts, is_empty));
    const Split idle = draw_split(SplitForm::idle_rank, 3, choices);
    EXPECT_TRUE(std::ranges::none_of(
        idle.parts, [&](const Split::Part& part) { return part.rank == idle.world - 1; }));
  }
}

TEST(Options, HaveNowAndThenWhatCodeInTheFieldHasThere) {
  const LossSignature& gae = *reference::find_signature("gae");
  std::map<Temper, int> undiscounted;
  int alone = 0;
  for (int i = 0; i < kDraws; ++i) {
    Choices choices(static_cast<std::uint64_t>(i));
    const auto all_counts = [](const LossSpec& spec) {
      return spec.number("gamma") == 1.0 && spec.number("lambda") == 1.0;
    };
    for (const Temper temper : {Temper::plain, Temper::nasty}) {
      undiscounted[temper] += all_counts(draw_spec(gae, temper, choices));
    }
    alone += all_counts(draw_spec_of_one(gae, 1, choices));
  }
  EXPECT_GT(undiscounted[Temper::plain], kDraws / 20);
  EXPECT_GT(undiscounted[Temper::nasty], kDraws / 20);
  EXPECT_GT(alone, kDraws / 4) << "where it is lambda's turn";
}

TEST(Options, NeighboursOfTheDefaultStayInTheRange) {
  const Option option{
      .name = "share", .kind = Option::Kind::real, .standard = 0.9, .low = 0.8, .high = 1.0};
  Choices choices(2);
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = std::get<double>(draw_option(option, Temper::plain, choices));
    EXPECT_TRUE(0.8 <= drawn && drawn <= 1.0);
  }
}

TEST(Options, AShareIsAsNearToAllAsToNothing) {
  const Option option{
      .name = "beta", .kind = Option::Kind::real, .standard = 0.5, .low = 0.0, .high = 1.0};
  Choices choices(3);
  int nothing = 0, all = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = std::get<double>(draw_option(option, Temper::extreme, choices));
    nothing += drawn > 0.0 && drawn < 1.0 / 64;
    all += drawn < 1.0 && drawn > 1.0 - 1.0 / 64;
  }
  EXPECT_GT(nothing, kDraws / 100);
  EXPECT_GT(all, kDraws / 100);
}

TEST(Options, DrawnNumbersHoldDefaultNoneEndsAndNeighbours) {
  const Option option{.name = "clamp",
                      .kind = Option::Kind::real,
                      .standard = 20.0,
                      .low = 1.0,
                      .high = 80.0,
                      .nullable = true};
  Choices choices(2);
  std::set<double> seen;
  int none = 0;
  for (int i = 0; i < kDraws; ++i) {
    const OptionValue value = draw_option(option, Temper::nasty, choices);
    none += std::holds_alternative<None>(value);
    if (const double* number = std::get_if<double>(&value)) {
      EXPECT_TRUE(1.0 <= *number && *number <= 80.0);
      seen.insert(*number);
    }
  }
  EXPECT_NEAR(none, 0.39 * kDraws, 0.05 * kDraws);  // a limit is about as often off as on
  for (double wanted : {1.0, 20.0, 80.0, 40.0, 10.0}) EXPECT_TRUE(seen.contains(wanted)) << wanted;
  EXPECT_GT(seen.size(), 50u);
}

}  // namespace
}  // namespace lossgate::fuzz
