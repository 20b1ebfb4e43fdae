// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/acceptance.h"
#include "fuzz/domains/long_shape.h"
#include "fuzz/long_case.h"
#include "reference/reference.h"

namespace lossgate::fuzz {
namespace {

TEST(LengthsOf, FormsTakeTurnsAlongTiersThatFillBlocks) {
  const LossSignature& signature = *reference::find_signature("grpo");
  std::set<LongForm> forms;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (const Length& length : lengths_of(seed, signature, kFloats)) {
      if (length.extents.axis == Axis::tokens && length.extents.first >= 8192 &&
          length.extents.first != length.extents.last) {
        forms.insert(length.form);
      }
    }
  }
  EXPECT_EQ(forms, (std::set{LongForm::padded, LongForm::whole, LongForm::other_option}));
}

TEST(LengthsOf, DtypesTakeTurnsAlongOddTiersAsAlongFullOnes) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  std::set<Dtype> odd, full, first;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    odd.clear(), full.clear();
    std::vector<Length> lengths = lengths_of(seed, signature, kFloats);
    std::erase_if(lengths, [](const Length& length) { return length.form == LongForm::thin; });
    for (const Length& length : lengths) {
      (length.extents.first % 2 != 0 ? odd : full).insert(length.dtype);
    }
    first.insert(lengths.front().dtype);
    for (std::size_t round = 0; round + 4 <= lengths.size(); round += 4) {
      std::set<Dtype> once;
      for (std::size_t i = round; i < round + 4; ++i) once.insert(lengths[i].dtype);
      EXPECT_EQ(once.size(), 4u) << seed << " " << round;
    }
    EXPECT_EQ(odd.size(), 4u) << seed;
    EXPECT_EQ(full.size(), 4u) << seed;
  }
  EXPECT_EQ(first.size(), 4u) << "of four seeds";
  EXPECT_TRUE(lengths_of(1, signature, {}).empty());
}

TEST(LengthsOf, TurnOneOptionOfEverySecondProductionLengthEachInTurn) {
  const LossSignature& signature = *reference::find_signature("grpo");
  std::set<std::string> turned;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::size_t others = 0, all = 0;
    for (const Length& length : lengths_of(seed, signature, kFloats)) {
      const auto& [axis, first, last, every] = length.extents;
      if (axis != Axis::tokens || first <= kThousands || first == last) continue;
      ++all;
      if (length.form != LongForm::other_option) continue;
      ++others;
      const Case c = draw_long_case(seed, signature, length);
      EXPECT_NE(c.shape[axis] % 4096, 0) << "chunks leave something over";
      for (const Option& option : signature.options) {
        if (*c.spec.find(option.name) != option.standard) turned.insert(option.name);
      }
    }
    EXPECT_EQ(all, 3u) << seed;
    EXPECT_GE(others, 1u) << seed;
    EXPECT_LE(others, 2u) << seed;
  }
  EXPECT_GT(turned.size(), 4u);
}

TEST(LengthsOf, TurnNoOptionOfWhichASubjectComputesOneValue) {
  LossSignature signature = *reference::find_signature("grpo");
  for (Option& option : signature.options) {
    if (option.name == "clip_low" || option.name == "kl_penalty") continue;
    option.nullable = false;
    if (const double* value = std::get_if<double>(&option.standard))
      option.low = option.high = *value;
    if (option.kind == Option::Kind::choice) option.choices.resize(1);
    if (std::holds_alternative<None>(option.standard))
      option.kind = Option::Kind::choice, option.choices.clear();
    if (option.kind == Option::Kind::choice && !option.choices.empty())
      option.standard = option.choices[0];
  }
  std::set<std::string> turned;
  int off = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = draw_long_case(
        seed, signature,
        {{Axis::tokens, 256, 256}, Dtype::f32, LongForm::other_option, Reduction::sum, seed});
    for (const Option& option : signature.options) {
      if (*c.spec.find(option.name) != option.standard) turned.insert(option.name);
    }
    off += c.spec.number("kl_penalty") == 0.0;
  }
  EXPECT_EQ(turned, (std::set<std::string>{"clip_low", "kl_penalty"}));
  EXPECT_GE(off, 4) << "of ten";
}

TEST(LengthsOf, HaveEachFormOfARowAlongTiersThatFillBlocks) {
  const LossSignature& signature = *reference::find_signature("log_prob");
  int both = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::set<LongForm> forms;
    for (const Length& length : lengths_of(seed, signature, kFloats)) {
      const bool full = length.extents.every == 128 && length.extents.first > 1024;
      if (length.extents.axis == Axis::vocab && full) forms.insert(length.form);
    }
    both += forms.contains(LongForm::far) && forms.contains(LongForm::ruled_out);
  }
  EXPECT_GE(both, 5) << "of eight seeds";
}

TEST(LengthsOf, AreProductionsInEachFormAndEachTierOnce) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  const auto longest = longest_tiers(signature);
  std::size_t others = 0, thin = 0, ruled_out = 0, far = 0, padded = 0, production = 0;
  const std::vector<Length> lengths = lengths_of(1, signature, kFloats);
  for (const Length& length : lengths) {
    others += length.form == LongForm::other_options;
    thin += length.form == LongForm::thin;
    if (length.form == LongForm::thin) EXPECT_EQ(length.dtype, Dtype::f64);
    const auto is_it = [&](const Tier& tier) {
      return tier.axis == length.extents.axis && tier.first == length.extents.first;
    };
    if (std::ranges::none_of(longest, is_it)) continue;
    ++production;
    ruled_out += length.form == LongForm::ruled_out;
    far += length.form == LongForm::far;
    padded += length.form == LongForm::padded;
  }
  EXPECT_EQ(others, longest.size());
  EXPECT_EQ(thin, 2u) << "along sequences and along tokens";
  EXPECT_EQ(ruled_out, 1u) << "along the vocabulary";
  EXPECT_EQ(far, 1u) << "along the vocabulary";
  EXPECT_EQ(lengths.back().form, LongForm::thin);
  EXPECT_EQ(padded, 1u) << "along tokens";
  EXPECT_EQ(production, 2 * longest.size() + thin + ruled_out + far + padded);
  const auto all = tiers(signature);
  const auto odd = std::ranges::count(all, 2, &Tier::every);
  EXPECT_EQ(std::ranges::count(lengths, LongForm::hostile, &Length::form), odd);
  const auto crossed = std::ranges::count(lengths, LongForm::crossed, &Length::form);
  EXPECT_EQ(crossed, 4);
  EXPECT_EQ(lengths.size(), production + all.size() + static_cast<std::size_t>(odd + crossed));
}

TEST(LengthsOf, AskEachReductionAlongEachAxisOfEachDtype) {
  const LossSignature& signature = *reference::find_signature("grpo");
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    std::set<std::pair<Axis, Reduction>> along;
    std::set<std::pair<Dtype, Reduction>> of;
    for (const Length& length : lengths_of(seed, signature, kFloats)) {
      const Reduction reduction = draw_long_case(seed, signature, length).spec.reduction;
      along.emplace(length.extents.axis, reduction);
      of.emplace(length.dtype, reduction);
    }
    const std::size_t reductions = signature.reductions.size();
    EXPECT_EQ(along.size(), 2 * reductions) << seed;
    EXPECT_EQ(of.size(), 4 * reductions) << seed;
  }
}

}  // namespace
}  // namespace lossgate::fuzz
