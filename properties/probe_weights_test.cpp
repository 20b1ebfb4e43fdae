// SPDX-License-Identifier: Apache-2.0
// Factors of sequences and numbers of other sequences, each by what the experiment says of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

using Factor = std::function<double(const BatchCounts&, std::size_t row)>;

/// A loss of which each sequence's part in value and gradient counts so many times, where the whole
/// batch is asked under this reduction.
impl::Implementation weighted(Reduction reduction, const Factor& factor,
                              const std::string& loss_id = "grpo") {
  return answering(loss_id, nullptr, [reduction, factor](const Case& c, LossResult& result) {
    if (c.spec.reduction != reduction) return;
    const CaseStudy study(*reference::find_loss(c.spec.loss), c);
    const BatchCounts counts(study);
    const auto tokens = static_cast<std::size_t>(c.shape[Axis::tokens]);
    const Tensor& terms = output(result, "per_token");
    Tensor& gradient = output(result, "gradient.log_prob");
    double loss = 0.0;
    at_positions(c, true, [&](std::int64_t p) {
      const std::size_t row = static_cast<std::size_t>(p) / tokens;
      const double times = factor(counts, row);
      loss += terms.at(p) * token_weight(c.spec, reduction, counts, row) * times;
      gradient.set(p, times * gradient.at(p));
    });
    output(result, "loss").set(0, loss);
  });
}

Case asking(Reduction reduction, const std::string& loss = "grpo") {
  Case c = ordinary_case(loss);
  c.spec.reduction = reduction;
  return c;
}

struct Wrong {
  Reduction reduction;
  const char* cause;
  const char* because;
  Factor factor;
};

TEST(ProbeWeights, TellsWhatStandsInTheDenominatorInsteadOfTheRightCount) {
  using N = const BatchCounts&;
  using R = std::size_t;
  constexpr auto kTokens = Reduction::token_mean, kRows = Reduction::sequence_mean;
  const Wrong all[] = {
      {kTokens, "scaled twice", "each term is divided by its count twice",
       [](N n, R) { return 1.0 / n.tokens; }},
      {kTokens, "padding counted", "terms are divided by all positions",
       [](N n, R) { return n.tokens / n.positions(); }},
      {kRows, "padding counted", "terms are divided by all positions",
       [](N n, R row) { return n.row_tokens[row] / n.columns; }},
      {kTokens, "wrong divisor", "terms are not divided at all", [](N n, R) { return n.tokens; }},
      {kRows, "wrong divisor", "terms are divided by the valid tokens",
       [](N n, R row) { return n.sequences * n.row_tokens[row] / n.tokens; }},
      {kTokens, "wrong divisor", "terms are divided by the sequences",
       [](N n, R) { return n.tokens / n.sequences; }},
      {kTokens, "wrong divisor", "terms are divided by the tokens of their sequence alone",
       [](N n, R row) { return n.tokens / n.row_tokens[row]; }},
      {kTokens, "wrong divisor", "terms are divided by the longest sequence",
       [](N n, R) { return n.tokens / n.columns; }},
      {kTokens, "wrong divisor", "terms are reduced as sequence_mean says",
       [](N n, R row) { return n.tokens / (n.sequences * n.row_tokens[row]); }},
  };
  for (const Wrong& wrong : all) {
    expect_shown(weighted(wrong.reduction, wrong.factor), asking(wrong.reduction), wrong.cause,
                 wrong.because);
  }
}

/// A divergence whose loss and gradient are so many times what they should be.
impl::Implementation divergence_times(const std::function<double(const Case&)>& factor) {
  return answering("jsd", nullptr, [factor](const Case& c, LossResult& result) {
    const double times = factor(c);
    for (const char* name : {"loss", "gradient.student_logits"}) {
      change_each(output(result, name), [times](double x) { return times * x; });
    }
  });
}

double entries_of_a_row(const Case& c) { return static_cast<double>(c.shape[Axis::vocab]); }

TEST(ProbeWeights, NameAMeanThatIsOverTheVocabularyAsWell) {
  const Case c = asking(Reduction::token_mean, "jsd");
  expect_shown(divergence_times([](const Case& x) { return 1.0 / entries_of_a_row(x); }), c,
               "wrong divisor",
               "terms are divided by the vocabulary as well, as a mean over all entries is");
  const auto with_padding = divergence_times([](const Case& x) {
    double tokens = 0.0;
    at_positions(x, true, [&](std::int64_t) { ++tokens; });
    const auto positions = static_cast<double>(x.shape[Axis::sequences] * x.shape[Axis::tokens]);
    return tokens / (positions * entries_of_a_row(x));
  });
  expect_shown(with_padding, c, "padding counted",
               "terms are divided by all positions and by the vocabulary as well, as a mean over "
               "all entries is");
}

TEST(ProbeWeights, TakeNoConstantForTheVocabularyThatHasAsManyTokens) {
  const Case c = asking(Reduction::token_mean, "jsd");
  const double entries = entries_of_a_row(c);
  const auto constant = divergence_times([entries](const Case&) { return 1.0 / entries; });
  EXPECT_EQ(diagnosed(constant, c).because.find("vocabulary"), std::string::npos);
}

TEST(ProbeWeights, SeesThatGroupsOfSequencesAreAveragedOneByOne) {
  const auto by_pairs = [](const BatchCounts& n, std::size_t row) {
    const double own = n.row_tokens[row] + n.row_tokens[row ^ 3U];  // the first with the last
    return n.tokens / (2.0 * own);
  };
  // No clip hides a sequence's gradient there.
  const Case c = asking(Reduction::token_mean, "cispo");
  expect_shown(weighted(Reduction::token_mean, by_pairs, "cispo"), c, "mean of means",
               "groups of sequences are averaged one by one");
  const auto no_count = [](const BatchCounts&, std::size_t row) { return row < 2 ? 1.37 : 0.61; };
  EXPECT_NE(diagnosed(weighted(Reduction::token_mean, no_count, "cispo"), c).cause,
            "mean of means");
}

TEST(ProbeWeights, SeesThatNeighboursAreAveragedThoughBothHalvesHaveAsManyTokens) {
  const auto by_neighbours = [](const BatchCounts& n, std::size_t row) {
    return n.tokens / (2.0 * (n.row_tokens[row] + n.row_tokens[row ^ 1U]));
  };
  expect_shown(weighted(Reduction::token_mean, by_neighbours, "cispo"),
               asking(Reduction::token_mean, "cispo"), "mean of means",
               "groups of sequences are averaged one by one");
}

/// A token mean whose tokens count so many times, by their column.
impl::Implementation weighted_by_column(double (*factor)(const std::vector<double>& column_tokens,
                                                         std::size_t column)) {
  return answering("value_clip", nullptr, [factor](const Case& c, LossResult& result) {
    if (c.spec.reduction != Reduction::token_mean) return;
    const auto tokens = static_cast<std::size_t>(c.shape[Axis::tokens]);
    std::vector<double> counts(tokens, 0.0);
    double all = 0.0, loss = 0.0;
    at_positions(c, true, [&](std::int64_t p) {
      ++counts[static_cast<std::size_t>(p) % tokens];
      ++all;
    });
    Tensor& gradient = output(result, "gradient.value");
    at_positions(c, true, [&](std::int64_t p) {
      const double times = factor(counts, static_cast<std::size_t>(p) % tokens);
      loss += times * output(result, "per_token").at(p) / all;
      gradient.set(p, times * gradient.at(p));
    });
    output(result, "loss").set(0, loss);
  });
}

TEST(ProbeWeights, SeesThatGroupsOfTokensAreAveragedOneByOne) {
  const auto by_pairs = [](const std::vector<double>& counts, std::size_t column) {
    double all = 0.0, own = 0.0, groups = 0.0;
    for (std::size_t t = 0; t < counts.size(); ++t) {
      const double pair = counts[t] + (t % 2 == 0 && t + 1 < counts.size() ? counts[t + 1] : 0.0);
      groups += t % 2 == 0 && pair > 0.0;
      all += counts[t];
      own += t / 2 == column / 2 ? counts[t] : 0.0;
    }
    return all / (groups * own);
  };
  Case c = asking(Reduction::token_mean, "value_clip");
  c.spec.set("value_clip", None{});  // no clip hides a token's gradient
  expect_shown(weighted_by_column(by_pairs), c, "mean of means",
               "groups of tokens are averaged one by one");
  const auto decaying = [](const std::vector<double>&, std::size_t column) {
    return 1.5 - 0.25 * static_cast<double>(column);
  };
  EXPECT_EQ(diagnosed(weighted_by_column(decaying), c).cause, "disagrees with the formula");
}

TEST(RowFactors, AreAsSureAsTheEntriesThatShowThem) {
  const auto third = [](const BatchCounts&, std::size_t row) { return row == 1 ? 1.0 / 3 : 1.0; };
  const auto fake = weighted(Reduction::sum, third);
  Case c = asking(Reduction::sum);
  c.upstream = 0x1p-6;
  const auto reading = Reading::of(grpo(), fake, c);
  ASSERT_TRUE(reading);
  const RowFactors factors = row_factors(*reading);
  ASSERT_EQ(factors.size(), 4U);
  for (const auto& [row, factor] : factors) {
    const double right = row == 1 ? 1.0 / 3 : 1.0;
    EXPECT_NEAR(factor.value, right, factor.error);
    EXPECT_GT(factor.error, 0.0);
    EXPECT_LT(factor.error, 1e-13) << "known to the digits of the format";
    double clearest = HUGE_VAL;
    for (const ReadEntry& e : reading->entries()) {
      if (reading->kind(e) != OutputKind::gradient || e.expected == 0.0) continue;
      if (static_cast<std::size_t>(e.index) / 5 != row) continue;
      clearest = std::min(clearest, 2.0 * e.accepted / std::fabs(e.expected));
    }
    EXPECT_DOUBLE_EQ(factor.error, clearest);
  }
}

TEST(RowFactors, AreNoneWhereEntriesDifferByMoreThanCountsDo) {
  const auto known = [](double upstream, double noise) {
    const auto fake = answering("cispo", nullptr, [noise](const Case&, LossResult& result) {
      double factor = 3.0;
      change_each(output(result, "gradient.log_prob"), [&](double x) {
        factor = factor == 3.0 ? 3.0 * (1.0 + noise) : 3.0;
        return factor * x;
      });
    });
    Case c = asking(Reduction::sum, "cispo");
    c.upstream = upstream;
    return !row_factors(*Reading::of(*reference::find_loss("cispo"), fake, c)).empty();
  };
  for (const double upstream : {1.0 / 64, 1.0, 64.0}) {
    EXPECT_TRUE(known(upstream, 1e-5)) << upstream;
    EXPECT_FALSE(known(upstream, 1e-2)) << upstream;
  }
}

TEST(RowFactors, AreThoseOfTheLossForAllSequencesWhereNothingElseIsWrong) {
  const auto fake = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "loss"), [](double x) { return 3.0 * x; });
  });
  const auto reading = Reading::of(grpo(), fake, asking(Reduction::token_mean));
  ASSERT_TRUE(reading);
  const RowFactors factors = row_factors(*reading);
  EXPECT_EQ(factors.size(), 4U);
  for (const auto& [row, factor] : factors) EXPECT_TRUE(factor.is(3.0)) << row;
}

/// GRPO that has at some tokens of the first sequence what the second should have.
impl::Implementation paired(bool every_token) {
  return answering("grpo", nullptr, [every_token](const Case& c, LossResult& result) {
    Tensor& gradient = output(result, "gradient.log_prob");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t t = 0; t < tokens; ++t) {
      const bool other = every_token || t == tokens - 1;
      gradient.set(t, other ? gradient.at(tokens + t) : 1.5 * gradient.at(t));
    }
  });
}

TEST(ProbeRows, WantsAllNumbersOfTheOtherSequence) {
  expect_shown(paired(true), ordinary_case("grpo"), "pairing by position",
               "a sequence has the numbers of another one");
  EXPECT_NE(diagnosed(paired(false), ordinary_case("grpo")).cause, "pairing by position");
}

TEST(ProbeRows, SeesEachOfTwoSequencesThatHaveTheOthersNumbers) {
  const auto exchanged = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    Tensor& gradient = output(result, "gradient.log_prob");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double first = gradient.at(t);
      gradient.set(t, gradient.at(tokens + t));
      gradient.set(tokens + t, first);
    }
  });
  const auto reading = Reading::of(grpo(), exchanged, grpo_case(3, 4, Dtype::f64));
  ASSERT_TRUE(reading);
  const Opinion opinion = other_row(*reading);
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->cause, "pairing by position");
}

TEST(ProbeRows, SeesAFieldWhoseSequencesAreMovedOnOrTurnedRound) {
  for (const auto& [step, first] : {std::pair{1, 1}, {1, -1}, {-1, -1}}) {
    const auto moved = answering("value_clip", [step, first](Case& c) {
      const Tensor given = c.batch.at("return");
      const auto rows = static_cast<int>(given.extents[0]),
                 each = static_cast<int>(given.extents[1]);
      for (int i = 0; i < rows * each; ++i) {
        const int row = ((first + step * (i / each)) % rows + rows) % rows;
        c.batch.at("return").set(i, given.at(row * each + i % each));
      }
    });
    expect_shown(moved, ordinary_case("value_clip"), "pairing by position",
                 "the answer is that with the sequences of return moved");
  }
}

TEST(ProbeRows, TakesNoRoundedNumberForThatOfAnotherSequence) {
  // The advantages of the second sequence are those of the first but for a thousandth, which a
  // rounding to eight bits takes.
  Case c = grpo_case(2, 4, Dtype::f64);
  c.spec.reduction = Reduction::sum;
  c.spec.set("kl_penalty", 0.0);
  for (std::int64_t t = 0; t < 4; ++t) {
    for (const std::int64_t row : {0, 1}) {
      for (const char* field : {"log_prob", "old_log_prob"}) put(c, field, row, t, -1.0);
      put(c, "advantage", row, t, (1.0 + static_cast<double>(t)) * (row == 1 ? 1.001 : 1.0));
      put(c, "mask", row, t, 1.0);
    }
  }
  const auto rounded = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.log_prob"),
                [](double x) { return round_to(Dtype::bf16, x); });
  });
  const auto reading = Reading::of(grpo(), rounded, c);
  ASSERT_TRUE(reading);
  EXPECT_TRUE(is_wrong(reading));
  EXPECT_FALSE(other_row(*reading));
}

TEST(ProbeRows, TakesNoZerosForTheNumbersOfAnotherSequence) {
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.0);
  for (std::int64_t t = 0; t < 5; ++t) put(c, "advantage", 1, t, 0.0);
  const auto dead = answering("grpo", nullptr, [](const Case& x, LossResult& result) {
    for (std::int64_t t = 0; t < x.shape[Axis::tokens]; ++t) {
      output(result, "gradient.log_prob").set(t, 0.0);
    }
  });
  EXPECT_NE(diagnosed(dead, c).cause, "pairing by position");
}

TEST(ProbeRows, TakesNoLostNumberForAZeroOfAnotherSequenceThatHasItsOtherNumbers) {
  // Of two sequences of the same numbers the second has one advantage of 0, and the first has lost
  // its gradient there.
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.0);
  for (std::int64_t t = 0; t < 5; ++t) {
    for (const std::int64_t row : {0, 1}) {
      for (const char* field : {"log_prob", "old_log_prob"}) put(c, field, row, t, -1.0);
      put(c, "ref_log_prob", row, t, -1.0);
      put(c, "advantage", row, t, row == 1 && t == 2 ? 0.0 : 1.0 + static_cast<double>(t));
      put(c, "mask", row, t, 1.0);
    }
  }
  const auto lost = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    output(result, "gradient.log_prob").set(2, 0.0);
  });
  EXPECT_NE(diagnosed(lost, c).cause, "pairing by position");
}

}  // namespace
}  // namespace lossgate::properties
