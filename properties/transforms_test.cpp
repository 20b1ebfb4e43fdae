// SPDX-License-Identifier: Apache-2.0
#include "properties/transforms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

std::vector<const Transform*> all_transforms() {
  std::vector<const Transform*> all = {
      &kRepeated,    &kMaskedFinite,      &kMaskedNonFinite,  &kPadded,     &kRowsPermuted,
      &kSplit,       &kAllMasked,         &kRowMasked,        &kOneLeft,    &kZeroAdvantage,
      &kNanAtValid,  &kNanInAnotherField, &kNanInAThirdField, &kNanOfModel, &kOnPolicy,
      &kStepForward, &kStepBackward};
  for (const Transform& way : kInvalid) all.push_back(&way);
  return all;
}

std::optional<Transformed> apply(const Transform& transform, const Case& c) {
  Case whole = c;
  whole.split = {};
  return transform.apply(grpo().signature, whole, c);
}

/// Bit for bit, so that an option which is NaN is the same as itself.
bool same(const OptionValue& a, const OptionValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return x && y ? std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y) : a == b;
}

bool same(const LossSpec& a, const LossSpec& b) {
  return a.loss == b.loss && a.reduction == b.reduction &&
         std::ranges::equal(a.options, b.options, [](const auto& x, const auto& y) {
           return x.first == y.first && same(x.second, y.second);
         });
}

bool same(const Case& a, const Case& b) {
  return same(a.spec, b.spec) && a.shape == b.shape && a.batch == b.batch && a.split == b.split;
}

Case ragged_case() {
  Case c = grpo_case(3, 4);
  mask_out(c, 0, 3);
  mask_out(c, 1, 0);
  mask_out(c, 2, 2);
  return c;
}

/// Positions whose data differs from the base in any field but the mask.
std::set<std::int64_t> changed(const Case& base, const Case& c) {
  std::set<std::int64_t> positions;
  for (const auto& [field, tensor] : base.batch.fields) {
    const Tensor& other = c.batch.at(field);
    for (std::int64_t i = 0; field != "mask" && i < tensor.size(); ++i) {
      if (load_bits(tensor.dtype, tensor.element(i)) != load_bits(other.dtype, other.element(i))) {
        positions.insert(i);
      }
    }
  }
  return positions;
}

TEST(Transforms, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Transform* transform : all_transforms()) names.insert(transform->name);
  EXPECT_EQ(names.size(), all_transforms().size());
}

TEST(Transforms, AreTheSameOnEveryCall) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const Case c = random_grpo_case(random);
    for (const Transform* transform : all_transforms()) {
      const auto first = apply(*transform, c), second = apply(*transform, c);
      ASSERT_EQ(first.has_value(), second.has_value());
      if (first) ASSERT_TRUE(same(first->c, second->c)) << transform->name;
    }
  }
}

TEST(Transforms, OfTheMaskedDataLeaveValidDataAlone) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const Case c = random_grpo_case(random);
    const std::vector<bool> valid = valid_positions(grpo().signature, c);
    for (const Transform* transform : {&kMaskedFinite, &kMaskedNonFinite}) {
      const auto moved = apply(*transform, c);
      ASSERT_EQ(moved.has_value(), std::ranges::find(valid, false) != valid.end());
      if (!moved) continue;
      for (std::int64_t at : changed(c, moved->c)) {
        ASSERT_FALSE(valid[static_cast<std::size_t>(at)]) << transform->name;
      }
      ASSERT_TRUE(moved->c.batch.at("mask") == c.batch.at("mask"));
    }
  }
}

TEST(Transforms, ReplaceEveryFieldAtEveryMaskedPosition) {
  const Case c = ragged_case();
  EXPECT_EQ(changed(c, apply(kMaskedFinite, c)->c), (std::set<std::int64_t>{3, 4, 10}));
  const Case other = apply(kMaskedNonFinite, c)->c;
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob", "advantage"}) {
    for (std::int64_t at : {3, 4, 10}) EXPECT_FALSE(std::isfinite(other.batch.at(field).at(at)));
  }
}

TEST(Transforms, OfMaskedDataPutTenThousandOfEitherSign) {
  std::set<double> values;
  Case c = grpo_case(2, 8);
  for (std::int64_t t = 0; t < 8; ++t) mask_out(c, 1, t);
  const Case other = apply(kMaskedFinite, c)->c;
  for (std::int64_t t = 0; t < 8; ++t) values.insert(get(other, "log_prob", 1, t));
  EXPECT_TRUE(values.contains(1e4));
  EXPECT_TRUE(values.contains(-1e4));
}

TEST(Transforms, OfMaskedDataStayOrdinaryWhereTheContractSaysSo) {
  LossSignature signature = grpo().signature;
  Case c = grpo_case(2, 8);
  for (std::int64_t t = 0; t < 8; ++t) mask_out(c, 1, t);
  for (const Masked contract : {Masked::ordinary, Masked::minus_infinity}) {
    for (Field& field : signature.fields) field.masked = contract;
    const Case other = kMaskedFinite.apply(signature, c, c)->c;
    std::set<double> log_probs, advantages;
    for (std::int64_t t = 0; t < 8; ++t) {
      log_probs.insert(get(other, "log_prob", 1, t));
      advantages.insert(get(other, "advantage", 1, t));
    }
    EXPECT_EQ(*log_probs.begin(), -1e4);
    EXPECT_EQ(*log_probs.rbegin(), 1.0);
    EXPECT_TRUE(log_probs.contains(-700.0));
    EXPECT_EQ(*advantages.rbegin(), 1e4);
    const bool infinite = contract == Masked::minus_infinity;
    EXPECT_EQ(kMaskedNonFinite.apply(signature, c, c).has_value(), infinite);
  }
}

/// The entry of the base at (s, t) must be found at index_of in the transformed tensor.
void expect_map_is_right(const Case& base, const Transformed& moved) {
  for (const auto& [field, tensor] : base.batch.fields) {
    const Tensor& there = moved.c.batch.at(field);
    const OutputInfo info{.name = field,
                          .field = "",
                          .axes = {Axis::sequences, Axis::tokens},
                          .extents = tensor.extents};
    std::set<std::int64_t> used;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const std::int64_t at = moved.index_of(info, there.extents, i);
      EXPECT_TRUE(used.insert(at).second);
      EXPECT_EQ(tensor.at(i), there.at(at)) << field << " " << i;
    }
  }
}

TEST(Padded, MovesEveryEntryWhereItsMapSaysAndMasksAllElse) {
  const Case c = ragged_case();
  const auto padded = apply(kPadded, c);
  LossSignature right = grpo().signature;
  right.prefix_mask = true;
  EXPECT_EQ(kPadded.apply(right, c, c)->token_offset, 0) << "nothing before what comes first";
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->c.shape[Axis::sequences], 4);
  EXPECT_EQ(padded->c.shape[Axis::tokens], 7);
  expect_map_is_right(c, *padded);
  const auto count = [](const Case& of) {
    return std::ranges::count(valid_positions(grpo().signature, of), true);
  };
  EXPECT_EQ(count(padded->c), count(c));
  EXPECT_FALSE(reference::expected_refusal(grpo(), padded->c));
  EXPECT_EQ(get(padded->c, "mask", 0, 1), 0.0);  // the new row
  EXPECT_EQ(get(padded->c, "mask", 1, 0), 0.0);  // the new column on the left
}

TEST(RowsPermuted, MovesWholeRowsAndNeedsTwoOfThem) {
  const Case c = ragged_case();
  const auto permuted = apply(kRowsPermuted, c);
  ASSERT_TRUE(permuted);
  expect_map_is_right(c, *permuted);
  EXPECT_EQ(get(permuted->c, "log_prob", 2, 1), get(c, "log_prob", 0, 1));
  EXPECT_TRUE(apply(kRowsPermuted, grpo_case(2, 4)));
  EXPECT_FALSE(apply(kRowsPermuted, grpo_case(1, 4)));
}

RC_GTEST_PROP(IndexMap, IsTheSameAsWalkingTheCoordinates, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto inner = *rc::gen::inRange<std::int64_t>(1, 4);
  const auto shift = *rc::gen::inRange<std::int64_t>(0, 3);
  Transformed moved{.c = {}, .row_of = {}, .token_offset = shift};
  for (std::int64_t s = 0; s < rows; ++s) moved.row_of.push_back(rows - s);
  const OutputInfo info{.name = "",
                        .field = "",
                        .axes = {Axis::sequences, Axis::tokens, Axis::vocab},
                        .extents = {rows, tokens, inner}};
  const Extents here = {rows + 1, tokens + 5, inner};
  for (std::int64_t s = 0; s < rows; ++s) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const std::int64_t to = ((rows - s) * here[1] + t + shift) * here[2] + k;
        RC_ASSERT(moved.index_of(info, here, (s * tokens + t) * inner + k) == to);
      }
    }
  }
}

TEST(Split, IsTheCasesOwnAndAbsentFromAWholeBatch) {
  Case c = grpo_case(2, 2);
  EXPECT_FALSE(apply(kSplit, c));
  c.split = {.world = 2, .parts = {{0, {1}}, {1, {0}}}};
  EXPECT_EQ(apply(kSplit, c)->c.split, c.split);
}

TEST(AllMasked, LeavesNoValidPosition) {
  const Case c = apply(kAllMasked, ragged_case())->c;
  EXPECT_EQ(std::ranges::count(valid_positions(grpo().signature, c), true), 0);
  EXPECT_TRUE(changed(ragged_case(), c).empty());
}

TEST(AllMasked, LeavesBehindTheMaskWhatTheContractAllows) {
  for (const Transform* transform : {&kAllMasked, &kRowMasked}) {
    LossSignature signature = grpo().signature;
    Case c = grpo_case(2, 2);
    put(c, "log_prob", 0, 0, -2e4);
    put(c, "advantage", 0, 0, 3e38);
    put(c, "old_log_prob", 0, 0, -5.0);
    const auto masked = [&](Masked contract) {
      for (Field& field : signature.fields) field.masked = contract;
      return transform->apply(signature, c, c)->c;
    };
    EXPECT_EQ(get(masked(Masked::anything), "log_prob", 0, 0), -2e4);
    EXPECT_EQ(get(masked(Masked::finite), "advantage", 0, 0), get(c, "advantage", 0, 0));
    EXPECT_EQ(get(masked(Masked::ordinary), "log_prob", 0, 0), -1e4);
    EXPECT_EQ(get(masked(Masked::minus_infinity), "log_prob", 0, 0), -1e4);
    EXPECT_EQ(get(masked(Masked::ordinary), "advantage", 0, 0), 1e4);
    EXPECT_EQ(get(masked(Masked::ordinary), "old_log_prob", 0, 0), -5.0);
    EXPECT_EQ(get(masked(Masked::zero), "old_log_prob", 0, 0), 0.0);
    EXPECT_EQ(get(masked(Masked::zero), "mask", 0, 0), 0.0);
    const bool all = transform == &kAllMasked;
    EXPECT_EQ(get(masked(Masked::zero), "log_prob", 1, 1) == 0.0, all);  // the other row stays
  }
}

TEST(AllMasked, LeavesOfEveryEntryOfAPositionWhatTheContractAllows) {
  LossSignature signature = *reference::find_signature("cross_entropy");
  for (Field& field : signature.fields) field.masked = Masked::zero;
  const Case c = kAllMasked.apply(signature, ordinary_case("cross_entropy"), {})->c;
  const Tensor& logits = c.batch.at("logits");
  for (std::int64_t i = 0; i < logits.size(); ++i) EXPECT_EQ(logits.at(i), 0.0) << i;
}

TEST(RowMasked, EmptiesOneLiveRowAndNeedsAnother) {
  Case c = ragged_case();
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 0, t);
  const Case emptied = apply(kRowMasked, c)->c;
  for (std::int64_t t = 0; t < 4; ++t) {
    EXPECT_EQ(get(emptied, "mask", 1, t), 0.0);  // row 0 was not live
    EXPECT_EQ(get(emptied, "mask", 2, t), get(c, "mask", 2, t));
  }
  EXPECT_FALSE(apply(kRowMasked, grpo_case(1, 4)));
}

TEST(OneLeft, LeavesTheFirstLivePositionAndNeedsMore) {
  Case c = ragged_case();
  mask_out(c, 0, 0);
  const Case alone = apply(kOneLeft, c)->c;
  const std::vector<bool> valid = valid_positions(grpo().signature, alone);
  EXPECT_EQ(std::ranges::count(valid, true), 1);
  EXPECT_EQ(get(alone, "mask", 0, 1), 1.0) << "the first that was live";
  EXPECT_FALSE(apply(kOneLeft, alone));
}

TEST(EmptyRows, AreNotMadeForAMeanThatCountsThem) {
  LossSignature signature = grpo().signature;
  signature.empty_rows = EmptyRows::counted;
  Case c = ragged_case();
  for (const Reduction reduction : signature.reductions) {
    c.spec.reduction = reduction;
    const bool made = !averages_sequences(reduction);
    const auto padded = kPadded.apply(signature, c, c);
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->c.shape[Axis::sequences], made ? 4 : 3);
    EXPECT_EQ(padded->c.shape[Axis::tokens], 7);
    expect_map_is_right(c, *padded);
    EXPECT_EQ(kRowMasked.apply(signature, c, c).has_value(), made) << name(reduction);
    EXPECT_EQ(kOneLeft.apply(signature, c, c).has_value(), made) << name(reduction);
    EXPECT_TRUE(kAllMasked.apply(signature, c, c));  // that is 0 whatever is counted
  }
}

TEST(NanAtValid, PoisonsOneEntryAtAValidPosition) {
  std::mt19937_64 random(5);
  std::set<std::string> fields;
  bool infinity = false;
  for (int i = 0; i < 300; ++i) {
    Case c = random_grpo_case(random);
    const std::vector<bool> valid = valid_positions(grpo().signature, c);
    const auto poisoned = apply(kNanAtValid, c);
    ASSERT_EQ(poisoned.has_value(), std::ranges::find(valid, true) != valid.end());
    if (!poisoned) continue;
    const auto at = changed(c, poisoned->c);
    ASSERT_EQ(at.size(), 1u);
    ASSERT_TRUE(valid[static_cast<std::size_t>(*at.begin())]);
    for (const auto& [field, tensor] : poisoned->c.batch.fields) {
      const double value = tensor.at(*at.begin());
      if (std::isfinite(value)) continue;
      fields.insert(field);
      infinity |= std::isinf(value);
      if (std::isinf(value)) ASSERT_EQ(field, "advantage");  // the one where it must surface
    }
  }
  EXPECT_EQ(fields.size(), 4u);
  EXPECT_TRUE(infinity);
}

TEST(NanAtValid, PoisonsAWholeRowOfWhatASequenceHasOnceOf) {
  LossSignature signature = grpo().signature;
  for (Field& field : signature.fields) field.one_per_sequence = field.name == "advantage";
  int rows = 0;
  for (int i = 0; i < 100; ++i) {
    Case c = ragged_case();
    put(c, "log_prob", 0, 0, -0.01 * i);  // another choice
    const Case poisoned = kNanAtValid.apply(signature, c, c)->c;
    int bad = 0;
    for (std::int64_t at = 0; at < 12; ++at) {
      bad += !std::isfinite(poisoned.batch.at("advantage").at(at));
    }
    ASSERT_TRUE(bad == 0 || bad == 4);
    rows += bad > 0;
  }
  EXPECT_GT(rows, 10);
}

TEST(Invalid, IsAlwaysRefusedAndInMoreThanOneWay) {
  std::mt19937_64 random(6);
  std::set<std::string> arguments;
  for (int i = 0; i < 300; ++i) {
    const Case c = random_grpo_case(random);
    int ways = 0;
    for (const Transform& way : kInvalid) {
      const auto invalid = apply(way, c);
      if (!invalid) continue;
      const auto refusal = reference::expected_refusal(grpo(), invalid->c);
      ASSERT_TRUE(refusal) << way.name;
      arguments.insert(refusal->argument);
      ++ways;
    }
    EXPECT_GE(ways, 2) << "its reduction and an option";
  }
  EXPECT_TRUE(arguments.contains("mask") && arguments.contains("reduction"));
  EXPECT_GE(arguments.size(), 6u) << "fields and options";
}

TEST(Invalid, SpoilsNoOptionThatHasOneValue) {
  std::mt19937_64 random(6);
  LossSignature narrowed = grpo().signature;
  for (Option& option : narrowed.options) option.high = option.low;
  for (int i = 0; i < 100; ++i) {
    const Case c = random_grpo_case(random);
    for (const Transform& way : kInvalid) {
      const auto invalid = way.apply(narrowed, c, c);
      for (const auto& [name, value] : c.spec.options) {
        if (invalid) EXPECT_TRUE(same(*invalid->c.spec.find(name), value)) << name;
      }
    }
  }
}

TEST(Step, MovesDifferentiableEntriesAtValidPositionsOnly) {
  const Case c = ragged_case();
  const Case forward = apply(kStepForward, c)->c, backward = apply(kStepBackward, c)->c;
  EXPECT_EQ(changed(c, forward).size(), 9u);
  for (std::int64_t at : changed(c, forward)) {
    const double middle = c.batch.at("log_prob").at(at);
    const double up = forward.batch.at("log_prob").at(at) - middle;
    EXPECT_NEAR(up, middle - backward.batch.at("log_prob").at(at), 1e-6);
  }
  EXPECT_TRUE(forward.batch.at("old_log_prob") == c.batch.at("old_log_prob"));
}

TEST(Step, MakesNoLogProbOfMoreThanOne) {
  Case c = ragged_case();
  change_each(c.batch.at("log_prob"), [](double) { return 0.0; });
  for (const Transform* step : {&kStepForward, &kStepBackward}) {
    const Case stepped = apply(*step, c)->c;
    const Tensor& moved = stepped.batch.at("log_prob");
    for (std::int64_t i = 0; i < moved.size(); ++i) EXPECT_LE(moved.at(i), 0.0);
    EXPECT_FALSE(moved == c.batch.at("log_prob")) << "half of them go down";
  }
}

TEST(Transforms, DoNotApplyToALossWithoutPositions) {
  LossSignature signature = grpo().signature;
  signature.mask = "";
  signature.rows_permutable = signature.tokens_paddable = signature.splittable = false;
  signature.advantage = "";
  signature.on_policy = {};
  Case c = grpo_case(2, 2);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  for (const Transform* transform :
       {&kMaskedFinite, &kMaskedNonFinite, &kPadded, &kRowsPermuted, &kSplit, &kAllMasked,
        &kRowMasked, &kOneLeft, &kZeroAdvantage, &kOnPolicy}) {
    EXPECT_FALSE(transform->apply(signature, c, c)) << transform->name;
  }
}

}  // namespace
}  // namespace lossgate::properties
