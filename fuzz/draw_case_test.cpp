// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_case.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fuzz/acceptance.h"
#include "fuzz/census.h"
#include "fuzz/fake_signatures.h"
#include "reference/reference.h"
#include "reference/spec/groups.h"
#include "reference/spec/lists.h"
#include "reference/spec/masked.h"

namespace lossgate::fuzz {
namespace {

TEST(DrawCase, HasAsManyPairsOrRewardsAsItWouldHaveTokens) {
  const LossSignature& pairs = *reference::find_signature("dpo");
  const LossSignature& rewards = *reference::find_signature("group_advantage");
  const LossSignature& prompts = *reference::find_signature("prompt_dedup");
  int many = 0, rewarded = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    many += draw(pairs, Dtype::f32, Profile::hostile, i).shape[Axis::sequences] > 16;
    rewarded += draw(rewards, Dtype::f32, Profile::hostile, i).shape[Axis::sequences] > 16;
    EXPECT_LE(draw(prompts, Dtype::f32, Profile::hostile, i).shape[Axis::sequences], 16);
  }
  EXPECT_GT(many, 40);
  EXPECT_GT(rewarded, 40);
}

TEST(DrawCase, SaysOfSomeSequencesThatItIsSoOfAllAndOfNone) {
  const LossSignature& signature = *reference::find_signature("kto");
  for (const Profile profile : kAllProfiles) {
    int all = 0, none = 0, mixed = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const Case c = draw(signature, Dtype::f32, profile, i);
      const Tensor& desirable = c.batch.at("desirable");
      std::int64_t ones = 0;
      for (std::int64_t s = 0; s < desirable.size(); ++s) ones += desirable.integer_at(s);
      if (desirable.size() == 0) continue;
      ++(ones == 0 ? none : ones == desirable.size() ? all : mixed);
    }
    EXPECT_GT(all, 5) << name(profile);
    EXPECT_GT(none, 5) << name(profile);
    EXPECT_GT(mixed, 50) << name(profile);
  }
}

TEST(DrawCase, SameSeedGivesTheSameCase) {
  for (const LossSignature& signature : all_signatures()) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      EXPECT_TRUE(is_same(c, draw(signature, Dtype::f32, Profile::hostile, i)));
      EXPECT_FALSE(is_same(c, draw(signature, Dtype::f32, Profile::hostile, i + 1)));
    }
  }
}

TEST(DrawCase, SeedsOfCasesDependOnEverythingThatNamesThem) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t root : {0, 1, 2}) {
    for (std::string_view loss : {"", "a", "b"}) {
      for (Dtype dtype : kFloats) {
        for (std::uint64_t i = 0; i < 100; ++i) seeds.insert(case_seed(root, loss, dtype, i));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 3u * 3u * 4u * 100u);
}

TEST(DrawCase, EveryCaseIsOneThatItsSignatureAccepts) {
  for (const LossSignature& signature : all_signatures()) {
    for (Dtype dtype : kFloats) {
      for (Profile profile : kAllProfiles) {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const Case c = draw(signature, dtype, profile, i);
          ASSERT_EQ(fault_of(signature, c, dtype), "")
              << signature.id << " " << name(dtype) << " " << name(profile) << " " << i;
        }
      }
    }
  }
}

TEST(DrawCase, FillsWideFieldsWithDigitsThat16BitsDoNotHave) {
  const LossSignature signature = fake_wide(fake_policy_loss(), {"old_log_prob", "advantage"});
  for (const char* field : {"old_log_prob", "advantage"}) {
    std::int64_t finer = 0, all = 0;
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Case c = draw(signature, Dtype::bf16, Profile::benign, i);
      EXPECT_EQ(c.batch.at("ref_log_prob").dtype, Dtype::bf16);
      const Tensor& wide = c.batch.at(field);
      ASSERT_EQ(wide.dtype, Dtype::f32);
      for_each_valid(signature, c, *signature.find_field(field), [&](std::int64_t e) {
        finer += round_to(Dtype::bf16, wide.at(e)) != wide.at(e);
        ++all;
      });
    }
    EXPECT_GT(2 * finer, all) << field << ", of " << all;
  }
}

RC_GTEST_PROP(DrawCase, AnyBytesGiveACaseThatItsSignatureAccepts, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 3000);
  const auto bytes =
      *rc::gen::container<std::vector<std::uint8_t>>(count, rc::gen::arbitrary<std::uint8_t>());
  const auto signature = *rc::gen::elementOf(all_signatures());
  const Dtype dtype =
      *rc::gen::elementOf(std::vector<Dtype>(std::begin(kFloats), std::end(kFloats)));
  const Profile profile =
      *rc::gen::elementOf(std::vector<Profile>(std::begin(kAllProfiles), std::end(kAllProfiles)));
  Choices choices{std::span<const std::uint8_t>(bytes)};
  RC_ASSERT(fault_of(signature, draw_case(signature, dtype, profile, choices), dtype) == "");
}

TEST(DrawCase, NoBytesGiveAMinimalCase) {
  for (Profile profile : kAllProfiles) {
    Choices choices{std::span<const std::uint8_t>()};
    const LossSignature signature = fake_policy_loss();
    const Case c = draw_case(signature, Dtype::f32, profile, choices);
    EXPECT_EQ(c.spec, standard_spec(signature));
    EXPECT_EQ(c.shape[Axis::sequences], 1);
    EXPECT_EQ(c.shape[Axis::tokens], 1);
    EXPECT_EQ(c.batch.at("mask").at(0), 1.0);
    EXPECT_EQ(c.batch.at("old_log_prob"), c.batch.at("log_prob"));
    EXPECT_TRUE(c.split.whole());
    EXPECT_EQ(c.layout, Layout::contiguous);
    EXPECT_EQ(c.upstream, 1.0);
  }
}

/// The policy loss as a caller has it who leaves `masked` in the padding of every field.
LossSignature padded_with(Masked masked) {
  LossSignature signature = fake_policy_loss();
  for (Field& field : signature.fields) field.masked = masked;
  return signature;
}

/// Calls `visit` with every floating-point value at a masked position of many cases.
template <class Visit>
void for_each_masked_value(const LossSignature& signature, Visit visit) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    const std::vector<bool> valid = valid_positions(signature, c);
    for (const auto& [name, tensor] : c.batch.fields) {
      for (std::int64_t at = 0; is_float(tensor.dtype) && at < tensor.size(); ++at) {
        if (!valid[static_cast<std::size_t>(at)]) visit(tensor.at(at));
      }
    }
  }
}

TEST(DrawCase, LeavesAtMaskedPositionsWhatTheContractLetsACallerLeave) {
  int infinite = 0, lowest = 0, other = 0;
  for_each_masked_value(padded_with(Masked::anything), [&](double x) { other += x - x != 0.0; });
  EXPECT_GT(other, 100);
  for_each_masked_value(padded_with(Masked::finite), [&](double x) {
    ASSERT_EQ(x - x, 0.0);
    lowest += x == -max_finite(Dtype::f32);
  });
  EXPECT_GT(lowest, 10);
  for_each_masked_value(padded_with(Masked::minus_infinity), [&](double x) {
    ASSERT_LE(x, 1e4);
    infinite += x == -HUGE_VAL;
  });
  EXPECT_GT(infinite, 100);
  for_each_masked_value(padded_with(Masked::zero), [](double x) { ASSERT_EQ(x, 0.0); });
}

TEST(DrawCase, LeavesAtMaskedPositionsNumbersOfAHealthyRun) {
  for (const Dtype dtype : kFloats) {
    int huge = 0, far = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const LossSignature signature = padded_with(Masked::ordinary);
      const Case c = draw(signature, dtype, Profile::hostile, i);
      const std::vector<bool> valid = valid_positions(signature, c);
      for (const Field& field : signature.fields) {
        const Tensor& tensor = c.batch.at(field.name);
        for (std::int64_t at = 0; is_float(tensor.dtype) && at < tensor.size(); ++at) {
          const double value = tensor.at(at);
          if (valid[static_cast<std::size_t>(at)]) {
            huge += std::fabs(value) > kLargestOrdinary;
          } else {
            ASSERT_TRUE(is_ordinary(field.quantity, value)) << field.name << " " << value;
            far += std::fabs(value) > 1e3;
          }
        }
      }
    }
    EXPECT_GT(huge, 10);  // valid ones are drawn as ever
    EXPECT_GT(far, 100);
  }
}

/// The largest finite logit of each row, and how many are ruled out.
std::vector<std::pair<double, int>> rows_of(const Tensor& logits) {
  std::vector<std::pair<double, int>> rows;
  const std::int64_t vocab = logits.extents.back();
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    if (i % vocab == 0) rows.emplace_back(-HUGE_VAL, 0);
    rows.back().first = std::max(rows.back().first, logits.at(i));
    rows.back().second += logits.at(i) == -HUGE_VAL;
  }
  return rows;
}

TEST(DrawCase, HasTwoModelsThatLieApartAndRuleOutOtherTokens) {
  const LossSignature& signature = *reference::find_signature("jsd");
  int apart = 0, ruled_out_by_one = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    const auto student = rows_of(c.batch.at("student_logits")),
               teacher = rows_of(c.batch.at("teacher_logits"));
    const std::vector<bool> valid = valid_positions(signature, c);
    for (std::size_t row = 0; row < student.size(); ++row) {
      if (!valid[row]) continue;
      apart += std::fabs(student[row].first - teacher[row].first) > 104.0;
      ruled_out_by_one += student[row].second != teacher[row].second;
    }
  }
  EXPECT_GT(apart, 20);
  EXPECT_GT(ruled_out_by_one, 20);
}

TEST(DrawCase, LeavesNoRowEmptyWhereAMeanWouldCountIt) {
  LossSignature loss = fake_policy_loss(), both = fake_mixed_loss();
  both.reductions = {Reduction::seq_mean_token_sum_norm};
  for (LossSignature signature : {loss, both}) {
    int empty_batches = 0, empty_rows = 0, single = 0;
    signature.empty_rows = EmptyRows::counted;
    for (std::uint64_t i = 0; i < 600; ++i) {
      const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
      const std::vector<bool> valid = valid_positions(signature, c);
      const std::int64_t tokens = c.shape[Axis::tokens];
      const bool any = std::ranges::find(valid, true) != valid.end();
      empty_batches += !any;
      for (auto row = valid.begin(); any && row != valid.end(); row += tokens) {
        const auto live = std::count(row, row + tokens, true);
        single += tokens > 1 && live == 1;
        empty_rows += live == 0;
        ASSERT_FALSE(live == 0 && averages_sequences(c.spec.reduction)) << i;
      }
    }
    EXPECT_GT(empty_batches, 5);
    EXPECT_GT(single, 50);
    EXPECT_EQ(empty_rows > 50, signature.id == loss.id);  // its other reductions are asked in full
  }
}

TEST(DrawCase, GivesAPinnedAxisItsExtentWhateverElseIsDrawn) {
  LossSignature signature = fake_mixed_loss();
  signature.pinned = {{Axis::support, 1}, {Axis::vocab, 4096}};
  std::int64_t most_tokens = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::soak, i);
    ASSERT_EQ(c.shape[Axis::support], 1);
    ASSERT_EQ(c.shape[Axis::vocab], 4096);
    ASSERT_EQ(c.batch.at("student").extents.back(), 1);
    ASSERT_EQ(c.batch.at("matrix").extents.front(), 4096);
    most_tokens = std::max(most_tokens, c.shape[Axis::tokens] * c.shape[Axis::sequences]);
  }
  EXPECT_GE(most_tokens, 4);
}

TEST(DrawCase, GivesOneNumberForEachSequenceWhereTheCallerHasNoMore) {
  LossSignature signature = fake_policy_loss();
  signature.fields[3].one_per_sequence = true;
  bool rows_differ = false;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    const Tensor& advantage = c.batch.at("advantage");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t at = 0; at < advantage.size(); ++at) {
      const double own = advantage.at(at), first = advantage.at(at / tokens * tokens);
      ASSERT_TRUE(own == first || (own != own && first != first)) << i;
      rows_differ = rows_differ || advantage.at(at) != advantage.at(0);
    }
  }
  EXPECT_TRUE(rows_differ);
}

TEST(DrawCase, MasksOnTheRightAloneWhereTheCallerHasNoOtherPadding) {
  for (LossSignature signature :
       {fake_policy_loss(), fake_mixed_loss(), *reference::find_signature("cross_entropy")}) {
    signature.prefix_mask = true;
    std::set<std::int64_t> counts;
    bool empty = false;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Case c = draw(signature, Dtype::f32, i % 2 ? Profile::hostile : Profile::benign, i);
      ASSERT_EQ(fault_of(signature, c, Dtype::f32), "") << signature.id << " " << i;
      const std::vector<bool> valid = valid_positions(signature, c);
      counts.insert(std::ranges::count(valid, true));
      empty |= has_empty_sequence(valid, c.shape[Axis::sequences]);
    }
    EXPECT_GT(counts.size(), 10u) << signature.id;
    EXPECT_TRUE(empty) << signature.id;
  }
}

TEST(DrawCase, HasGroupsOfOneSizeWhereTheCallerHasNoOthers) {
  LossSignature signature = *reference::find_signature("group_advantage");
  signature.fields[1].even_groups = true;
  std::set<std::int64_t> members;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = draw(signature, Dtype::f32, i % 2 ? Profile::hostile : Profile::benign, i);
    const Tensor& group = c.batch.at("group");
    ASSERT_TRUE(are_even_groups(group)) << i;
    ASSERT_GE(group.size(), 2) << i;
    members.insert(group.size() / (1 + group.integer_at(group.size() - 1)));
  }
  EXPECT_GE(members.size(), 5u);
}

TEST(DrawCase, SplitsEvenlyWhereTheTrainerDoes) {
  LossSignature signature = fake_policy_loss();
  for (const int asked : {0, 1, 2, 3, 4, 5}) {
    signature.even_parts = asked % 3 != 1;
    signature.even_ranks = asked % 3 != 2;
    signature.empty_rows = asked < 3 ? EmptyRows::skipped : EmptyRows::counted;
    std::set<std::size_t> parts;
    std::set<int> worlds;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Case c = draw(signature, Dtype::f32, i % 2 ? Profile::hostile : Profile::benign, i);
      ASSERT_EQ(fault_of(signature, c, Dtype::f32), "") << i;
      parts.insert(c.split.parts.size());
      worlds.insert(c.split.world);
    }
    EXPECT_GE(parts.size(), 4u);
    EXPECT_GE(worlds.size(), 2u);
  }
}

TEST(DrawCase, KeepsNumbersAsSmallAsTheCallerDoes) {
  LossSignature signature = fake_policy_loss();
  for (Field& field : signature.fields) {
    if (field.role != Role::mask) field.largest = 3.0;
  }
  int limits = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Case c = draw(signature, Dtype::bf16, i % 2 ? Profile::hostile : Profile::benign, i);
    ASSERT_EQ(fault_of(signature, c, Dtype::bf16), "") << i;
    const Tensor& first = c.batch.fields.front().second;
    for (std::int64_t at = 0; at < first.size(); ++at) limits += std::fabs(first.at(at)) == 3.0;
  }
  EXPECT_GT(limits, 100);
}

TEST(DrawCase, NamesNoTokenTwiceWhereTheCallerTookTheKLargest) {
  LossSignature signature = *reference::find_signature("sparse_jsd");
  const auto repeats = [&](bool distinct, std::optional<std::int64_t> pinned) {
    signature.fields[1].distinct = distinct;
    signature.pinned.clear();
    if (pinned) signature.pinned = {{Axis::support, *pinned}};
    int count = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Case c = draw(signature, Dtype::f32, i % 2 ? Profile::hostile : Profile::benign, i);
      LossSignature strict = signature;
      strict.fields[1].distinct = true;
      count += !lists_are_distinct(strict, c);
      if (distinct) EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << i;
    }
    return count;
  };
  EXPECT_GT(repeats(false, {}), 20);
  EXPECT_EQ(repeats(true, {}), 0);
  EXPECT_EQ(repeats(true, 9), 0) << "of a vocabulary that has as many";
}

TEST(DrawCase, LeavesZerosInAFieldThatTheCallerHasNoneOf) {
  LossSignature signature = fake_policy_loss();
  signature.fields[3].absent = true;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    const Tensor& advantage = c.batch.at("advantage");
    for (std::int64_t at = 0; at < advantage.size(); ++at) ASSERT_EQ(advantage.at(at), 0.0) << i;
  }
}

TEST(DrawCase, StaysOnOneRankWhereNobodySaysWhatRanksDo) {
  LossSignature signature = fake_policy_loss();
  signature.shardable = false;
  bool split = false;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Case c = draw(signature, Dtype::f32, Profile::hostile, i);
    ASSERT_EQ(c.split.world, 1);
    for (const Split::Part& part : c.split.parts) ASSERT_EQ(part.rank, 0);
    split = split || c.split.parts.size() > 1;
  }
  EXPECT_TRUE(split);
}

TEST(DrawCase, SoakCasesAreLargerNowAndThen) {
  const auto tokens = [](Profile profile) {
    std::int64_t most = 0;
    for (std::uint64_t i = 0; i < 500; ++i) {
      most = std::max(most, draw(fake_policy_loss(), Dtype::f32, profile, i).shape[Axis::tokens]);
    }
    return most;
  };
  EXPECT_LE(tokens(Profile::hostile), 129);
  EXPECT_GE(tokens(Profile::soak), 257);
}

}  // namespace
}  // namespace lossgate::fuzz
