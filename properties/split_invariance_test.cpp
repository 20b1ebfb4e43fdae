// SPDX-License-Identifier: Apache-2.0
// Rule D2: what is said of a split that does not give what the whole batch gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/fake_grpo.h"
#include "reference/spec/even_parts.h"

namespace lossgate::properties {
namespace {

TEST(SplitInvariance, IsSaidToBeNeverAskedWhereNobodyKnowsWhatATrainerDoes) {
  Case c = grpo_case(2, 3);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  CaseStudy study(grpo(), c);
  auto fake = fake_grpo();
  fake.contract.splits = false;
  Evaluation evaluation(study, fake);
  const Outcome outcome = find_property("split_invariance")->check(evaluation);
  EXPECT_EQ(outcome.verdict, Verdict::skipped);
  EXPECT_EQ(outcome.reason, "contract: micro_batches");
}

constexpr std::int64_t kRows = 5;

Case split_case() {
  Case c = grpo_case(kRows, 4);
  for (std::int64_t s = 0; s < kRows; ++s) {
    for (std::int64_t t = s; t < 4; ++t) mask_out(c, s, t == 0 ? 3 : t);
  }
  c.split = {.world = 2, .parts = {{0, {0, 3}}, {1, {1, 2, 4}}}};
  return c;
}

std::string text_of(const Split& split) {
  std::string text;
  for (const Split::Part& part : split.parts) {
    std::string rows;
    for (const std::int64_t s : part.sequences)
      rows += (rows.empty() ? "" : ", ") + std::to_string(s);
    text += "[" + rows + "] ";
  }
  return text + "on " + std::to_string(split.world) + (split.world == 1 ? " rank" : " ranks");
}

/// Scales the loss by a number of its own for each split, and keeps the splits that it was asked.
struct Asked {
  std::vector<Split> splits;
  std::vector<double> off_by;

  impl::Implementation implementation() {
    impl::Implementation fake = fake_grpo();
    fake.evaluate = [this, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
      LossResult result = sound(signature, c);
      if (c.split.whole()) return result;
      splits.push_back(c.split);
      off_by.push_back(0.01 * std::sin(static_cast<double>(splits.size())) + 0.25);
      Tensor& loss = result.outputs.front().tensor;
      loss.set(0, loss.at(0) * (1.0 + off_by.back()));
      return result;
    };
    return fake;
  }
};

TEST(RuleD2, TriesTwentyFourSplitsOfAllSequencesOverOneRankOrTwo) {
  Asked asked;
  const Outcome outcome = check("split_invariance", asked.implementation(), split_case());
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->split_bias.off_by.size(), 24U);
  ASSERT_GE(asked.splits.size(), 25U);  // the given one first
  std::set<std::size_t> parts;
  std::set<int> worlds;
  for (std::size_t i = 1; i <= 24; ++i) {
    const Split& split = asked.splits[i];
    parts.insert(split.parts.size());
    worlds.insert(split.world);
    std::vector<int> seen(kRows);
    for (std::size_t p = 0; p < split.parts.size(); ++p) {
      EXPECT_EQ(split.parts[p].rank, static_cast<int>(p) % split.world);
      for (const std::int64_t s : split.parts[p].sequences) ++seen.at(static_cast<std::size_t>(s));
    }
    EXPECT_EQ(std::ranges::count(seen, 1), kRows);
  }
  EXPECT_EQ(parts, (std::set<std::size_t>{2, 3, 4}));
  EXPECT_EQ(worlds, (std::set<int>{1, 2}));
}

TEST(RuleD2, SaysHowFarTheyAreOffOnAverageAndAtWorst) {
  Asked asked;
  const Outcome outcome = check("split_invariance", asked.implementation(), split_case());
  ASSERT_TRUE(outcome.violation);
  const SplitBias& bias = outcome.violation->split_bias;
  double total = 0.0;
  for (std::size_t i = 0; i < bias.off_by.size(); ++i) {
    EXPECT_NEAR(bias.off_by[i], asked.off_by[i + 1], 1e-6);
    total += bias.off_by[i];
  }
  const auto worst = std::ranges::max_element(bias.off_by);
  EXPECT_EQ(bias.worst,
            text_of(asked.splits[static_cast<std::size_t>(worst - bias.off_by.begin()) + 1]));
  char text[128];
  std::snprintf(text, sizeof text, "off by %+.3g on average, %+.3g at worst", total / 24, *worst);
  EXPECT_NE(outcome.violation->detail.find(text), std::string::npos) << outcome.violation->detail;
}

TEST(RuleD2, SaysNothingBesideALossThatIsZeroOrNoNumber) {
  Case c = split_case();
  c.spec.set("kl_penalty", 0.0);
  for (std::int64_t i = 0; i < 4 * kRows; ++i) put(c, "advantage", i / 4, i % 4, 0.0);
  auto fake = fake_grpo();
  fake.evaluate = [sound = fake.evaluate](const LossSignature& signature, const Case& x) {
    LossResult result = sound(signature, x);
    if (!x.split.whole()) result.outputs.front().tensor.set(0, 1.0);
    return result;
  };
  const Outcome outcome = check("split_invariance", fake, c);
  ASSERT_TRUE(outcome.violation);
  EXPECT_TRUE(outcome.violation->split_bias.off_by.empty());
  EXPECT_EQ(outcome.violation->detail.find("over"), std::string::npos);
}

TEST(RuleD2, AsksNoSplitAtRandomOfWhomNobodyReadsTheBias) {
  Asked asked;
  const auto fake = asked.implementation();
  CaseStudy study(grpo(), split_case());
  Evaluation evaluation(study, fake);
  evaluation.tells_bias = false;
  const Outcome outcome = find_property("split_invariance")->check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_FALSE(outcome.violation->cause.empty());
  EXPECT_TRUE(outcome.violation->split_bias.off_by.empty());
  EXPECT_EQ(outcome.violation->detail.find("over"), std::string::npos);
  EXPECT_LE(asked.splits.size(), 2U) << "the given one, and its parts on one rank";
}

TEST(RuleD2, IsNoPartOfTheNameOfAFinding) {
  Asked asked;
  const auto fake = asked.implementation();
  Case c = split_case();
  c.spec.set("kl_estimator", "k2");  // which is looked for in its name
  CaseStudy study(grpo(), c);
  Evaluation evaluation(study, fake);
  const Property& property = *find_property("split_invariance");
  const Outcome outcome = property.check(evaluation);
  ASSERT_TRUE(outcome.violation);
  const std::size_t known = asked.splits.size();
  EXPECT_GE(known, 25U);
  name_finding(study, fake, property, *outcome.violation, /*benign=*/true);
  EXPECT_GT(asked.splits.size(), known);
  EXPECT_LE(asked.splits.size(), known + 2);
}

/// Six sequences of as many tokens as their number.
Case ragged_case(Reduction reduction, std::vector<Split::Part> parts) {
  Case c = grpo_case(6, 6);
  c.spec.reduction = reduction;
  for (std::int64_t s = 0; s < 6; ++s) {
    for (std::int64_t t = s + 1; t < 6; ++t) mask_out(c, s, t);
  }
  c.split = {.world = 1, .parts = std::move(parts)};
  return c;
}

/// Each part divides by its own count, and a trainer averages them so many times.
impl::Implementation averaged(int times) {
  impl::Implementation fake = fake_grpo(Flaw::mean_of_means);
  fake.evaluate = [times, of_means = fake.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = of_means(signature, c);
    const auto parts = static_cast<double>(std::max<std::size_t>(c.split.parts.size(), 1));
    for (Output& output : result.outputs) {
      const int left = output.name == "loss" ? times - 1 : output.name == "per_token" ? 0 : times;
      for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
        output.tensor.set(i, output.tensor.at(i) / std::pow(parts, left));
      }
    }
    return result;
  };
  return fake;
}

/// Each rank divides by its own count, whatever its parts are, and a trainer averages the ranks.
impl::Implementation averaged_over_ranks() {
  impl::Implementation fake = averaged(1);
  fake.evaluate = [of_parts = fake.evaluate](const LossSignature& signature, const Case& c) {
    if (c.split.whole()) return of_parts(signature, c);
    Case by_rank = c;
    by_rank.split = {.world = 1, .parts = {}};
    by_rank.split.parts.resize(static_cast<std::size_t>(c.split.world));
    for (const Split::Part& part : c.split.parts) {
      auto& own = by_rank.split.parts.at(static_cast<std::size_t>(part.rank)).sequences;
      own.insert(own.end(), part.sequences.begin(), part.sequences.end());
    }
    return of_parts(signature, by_rank);
  };
  return fake;
}

enum class Even { parts, ranks };

Outcome promised(Even even, const impl::Implementation& implementation, const Case& c) {
  reference::Loss loss = grpo();
  loss.signature.even_parts = even == Even::parts;
  loss.signature.even_ranks = even == Even::ranks;
  CaseStudy study(loss, c);
  Evaluation evaluation(study, implementation);
  return find_property("split_invariance")->check(evaluation);
}

Outcome of_even_parts(const impl::Implementation& implementation, const Case& c) {
  return promised(Even::parts, implementation, c);
}

TEST(RuleD1, MeansOverSequencesMayBeAveragedOfPartsAsLargeAsEachOther) {
  using enum Reduction;
  const std::vector<Split::Part> even = {{0, {0, 4, 2}}, {0, {1, 3, 5}}},
                                 uneven = {{0, {0, 4}}, {0, {2, 1, 3, 5}}};
  for (const Reduction reduction : {sequence_mean, seq_mean_token_sum_norm}) {
    const Case c = ragged_case(reduction, uneven);
    EXPECT_EQ(check("split_invariance", averaged(1), c).verdict, Verdict::violated);
    EXPECT_EQ(of_even_parts(averaged(1), c).reason, "contract");
    const Case kept = ragged_case(reduction, even);
    EXPECT_EQ(of_even_parts(averaged(1), kept).verdict, Verdict::held);
    EXPECT_EQ(of_even_parts(averaged(0), kept).verdict, Verdict::violated) << "a sum of means";
    EXPECT_EQ(of_even_parts(averaged(2), kept).verdict, Verdict::violated) << "divided twice";
  }
  EXPECT_EQ(of_even_parts(averaged(1), ragged_case(token_mean, even)).verdict, Verdict::violated);
}

TEST(RuleD1, MeansOfRanksMayBeAveragedOfRanksThatHoldEquallyManyInWhateverParts) {
  Case kept = ragged_case(Reduction::sequence_mean, {{0, {0, 4}}, {0, {2}}, {1, {1, 3, 5}}});
  kept.split.world = 2;
  EXPECT_EQ(promised(Even::ranks, averaged_over_ranks(), kept).verdict, Verdict::held);
  EXPECT_EQ(promised(Even::parts, averaged_over_ranks(), kept).reason, "contract");
  EXPECT_EQ(promised(Even::ranks, averaged(1), kept).verdict, Verdict::violated)
      << "its parts are averaged, too";
  Case c = kept;
  c.split.parts = {{0, {0, 4}}, {1, {2}}, {1, {1, 3, 5}}};
  EXPECT_EQ(promised(Even::ranks, averaged_over_ranks(), c).reason, "contract");
  EXPECT_EQ(check("split_invariance", averaged_over_ranks(), c).verdict, Verdict::violated);
  c.split.parts = {{0, {0, 4}}, {1, {2, 1}}, {1, {3, 5}}};
  EXPECT_EQ(promised(Even::parts, averaged_over_ranks(), c).verdict, Verdict::violated)
      << "parts as large as each other make no ranks so";
}

TEST(RuleD1, SequencesThatAMeanLeavesOutMakeNoPartLarger) {
  const std::vector<Split::Part> of_live_ones = {{0, {0, 4}}, {0, {1, 2, 3, 5}}},
                                 of_all = {{0, {0, 4, 5}}, {0, {1, 2, 3}}};
  for (const auto& parts : {of_live_ones, of_all}) {
    Case c = ragged_case(Reduction::sequence_mean, parts);
    for (const std::int64_t s : {2, 5}) {
      for (std::int64_t t = 0; t <= s; ++t) mask_out(c, s, t);
    }
    // Two count of each four, or of each three.
    EXPECT_EQ(of_even_parts(averaged(1), c).verdict, Verdict::held);
    c.split.parts = {{0, {0, 4, 1}}, {0, {2, 3, 5}}};
    EXPECT_EQ(of_even_parts(averaged(1), c).reason, "contract");
    EXPECT_EQ(check("split_invariance", averaged(1), c).verdict, Verdict::violated);
  }
}

TEST(RuleD2, TriesNoUnevenSplitWhereTheTrainerMakesNone) {
  Case c = ragged_case(Reduction::sequence_mean, {{0, {0, 4, 2}}, {0, {1, 3, 5}}});
  LossSignature signature = grpo().signature;
  signature.even_parts = true;
  Asked asked;
  const Outcome outcome = of_even_parts(asked.implementation(), c);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->split_bias.off_by.size(), 24U);
  for (const Split& split : asked.splits) {
    c.split = split;
    EXPECT_TRUE(has_even_parts(signature, c)) << text_of(split);
  }
}

TEST(RuleC6, AMicroBatchWithoutAValidPositionMayBeAnErrorByContract) {
  Case c = grpo_case(3, 3);
  c.split = {.world = 1, .parts = {{0, {0, 1}}, {0, {2}}}};
  Case masked = c, without = c;
  for (std::int64_t t = 0; t < 3; ++t) mask_out(masked, 2, t);
  without.split.parts.push_back({0, {}});
  impl::Implementation refuses = fake_grpo();
  refuses.evaluate = [sound = refuses.evaluate](const LossSignature& signature, const Case& x) {
    const bool none = std::ranges::any_of(x.split.parts, [&](const Split::Part& part) {
      return std::ranges::all_of(part.sequences,
                                 [&](std::int64_t s) { return get(x, "mask", s, 0) == 0.0; });
    });
    if (!none) return sound(signature, x);
    LossResult refused;
    refused.refusal = Refusal{"mask", -1, -1, "nothing is valid"};
    return refused;
  };
  EXPECT_EQ(check("split_invariance", refuses, c).verdict, Verdict::held);
  for (const Case& empty : {masked, without}) {
    EXPECT_EQ(check("split_invariance", refuses, empty).verdict, Verdict::violated);
    for (const Empty by_contract : {Empty::nan, Empty::error}) {
      impl::Implementation fake = refuses;
      fake.contract.empty = by_contract;
      EXPECT_EQ(check("split_invariance", fake, empty).reason, "contract");
      EXPECT_EQ(check("split_invariance", fake, c).verdict, Verdict::held);
    }
  }
}

}  // namespace
}  // namespace lossgate::properties
