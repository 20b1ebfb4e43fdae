// SPDX-License-Identifier: Apache-2.0
// What a split does to each sequence's part, by the factor that it gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "properties/diagnosis.h"
#include "properties/fake_answer.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Where a sequence is, and what is there.
struct Home {
  double own_tokens = 0.0;   ///< of its part
  double rank_tokens = 0.0;  ///< of its rank
  double rank_parts = 0.0;
  bool last = false;  ///< in the last part
};

Home home_of(const Case& c, const BatchCounts& counts, std::int64_t row) {
  const auto tokens_of = [&](const Split::Part& part) {
    double tokens = 0.0;
    for (const std::int64_t s : part.sequences) {
      tokens += counts.row_tokens[static_cast<std::size_t>(s)];
    }
    return tokens;
  };
  const auto& parts = c.split.parts;
  const auto own = std::ranges::find_if(parts, [&](const Split::Part& part) {
    return std::ranges::find(part.sequences, row) != part.sequences.end();
  });
  Home home{.own_tokens = tokens_of(*own), .last = own == parts.end() - 1};
  for (const Split::Part& part : parts) {
    if (part.rank != own->rank) continue;
    home.rank_tokens += tokens_of(part);
    home.rank_parts += 1.0;
  }
  return home;
}

using Factor = std::function<double(const Home&, const BatchCounts&, double world)>;

/// CISPO, whose clip hides no gradient: where the batch is split, each sequence's part counts so
/// many times.
impl::Implementation split_by(const Factor& factor) {
  return answering("cispo", nullptr, [factor](const Case& c, LossResult& result) {
    if (c.split.whole()) return;
    const CaseStudy study(*reference::find_loss("cispo"), c);
    const BatchCounts counts(study);
    Tensor& gradient = output(result, "gradient.log_prob");
    double loss = 0.0;
    at_positions(c, true, [&](std::int64_t p) {
      const std::int64_t row = p / c.shape[Axis::tokens];
      const double times = factor(home_of(c, counts, row), counts, c.split.world);
      loss += times * output(result, "per_token").at(p) *
              token_weight(c.spec, c.spec.reduction, counts, static_cast<std::size_t>(row));
      gradient.set(p, times * gradient.at(p));
    });
    output(result, "loss").set(0, loss);
  });
}

Case asking(Reduction reduction) {
  Case c = ordinary_case("cispo");
  c.spec.reduction = reduction;
  c.split = {.world = 2, .parts = {{0, {0, 2}}, {1, {1}}, {1, {3}}}};
  return c;
}

constexpr const char* kOwnCount = "each part is divided by its own count";

TEST(ProbeSplit, NamesTheMeanOfMeansHoweverMeansArePutTogether) {
  const Case c = asking(Reduction::token_mean);
  for (const bool over_parts : {true, false}) {
    for (const bool over_ranks : {true, false}) {
      const auto shared = [=](const Home& home, double world) {
        return (over_parts ? home.rank_parts : 1.0) * (over_ranks ? world : 1.0);
      };
      const auto by_part = [=](const Home& home, const BatchCounts& n, double world) {
        return n.tokens / home.own_tokens / shared(home, world);
      };
      const auto by_rank = [=](const Home& home, const BatchCounts& n, double world) {
        return n.tokens / home.rank_tokens / shared(home, world);
      };
      expect_shown(split_by(by_part), c, "mean of means", kOwnCount);
      expect_shown(split_by(by_rank), c, "mean of means", kOwnCount);
    }
  }
}

TEST(ProbeSplit, TellsADivisionByTheNumberOfPartsFromThatByTheirCounts) {
  const auto twice = [](const Home& home, const BatchCounts&, double) {
    return 1.0 / home.rank_parts;
  };
  expect_shown(split_by(twice), asking(Reduction::token_mean), "scaled twice",
               "each part is divided by the number of parts as well");
}

TEST(ProbeSplit, TellsAnAverageOverPartsOfASumFromOneOverRanks) {
  const Case c = asking(Reduction::sum);
  const auto over_parts = [](const Home& home, const BatchCounts&, double) {
    return 1.0 / home.rank_parts;
  };
  const auto over_ranks = [](const Home&, const BatchCounts&, double world) { return 1.0 / world; };
  const auto undone = [](const Home&, const BatchCounts&, double world) { return world; };
  const char* multiple = "the result is a multiple by the number of ranks";
  expect_shown(split_by(over_ranks), c, "rank average", multiple);
  expect_shown(split_by(undone), c, "rank average", multiple);
  EXPECT_EQ(diagnosed(split_by(over_parts), c).cause, "scaled twice");
}

TEST(ProbeSplit, NamesTheRemainderThatIsDroppedAndNoOtherShare) {
  const auto last_times = [](double times) {
    return
        [times](const Home& home, const BatchCounts&, double) { return home.last ? times : 1.0; };
  };
  const Case c = asking(Reduction::token_mean);
  expect_shown(split_by(last_times(0.0)), c, "remainder dropped",
               "some sequences of the split batch are lost");
  EXPECT_EQ(diagnosed(split_by(last_times(0.3)), c).because, "");
}

TEST(ProbeSplit, SuspectsTheRanksWhereThePartsOfOneAreRight) {
  const auto odd = [](const Home& home, const BatchCounts&, double world) {
    return world == 1.0 ? 1.0 : home.last ? 0.3 : 1.1;
  };
  expect_shown(split_by(odd), asking(Reduction::token_mean), "rank average",
               "micro-batches of one rank are right");
}

TEST(ProbeSplit, TakesNoAverageOverRanksForAMeanOfMeansWhereNoTokensAreCounted) {
  for (const Reduction reduction : {Reduction::sum, Reduction::sum_over_items}) {
    const auto fake = answering("cross_entropy", nullptr, [=](const Case& c, LossResult& result) {
      if (c.spec.reduction != reduction) return;
      for (const char* name : {"loss", "gradient.logits"}) {
        change_each(output(result, name), [&](double x) { return x / c.split.world; });
      }
    });
    Case c = ordinary_case("cross_entropy");
    c.spec.reduction = reduction;
    c.split = {.world = 2, .parts = {{0, {0, 2}}, {1, {1}}, {1, {3}}}};
    expect_shown(fake, c, "rank average", "the result is a multiple by the number of ranks");
  }
}

TEST(ProbeSplit, AsksOneRankAloneWhereThereAreNoOthers) {
  for (const bool shardable : {true, false}) {
    reference::Loss loss = *reference::find_loss("cispo");
    loss.signature.shardable = shardable;
    int ranks = 0;
    bool parts_of_one = false;
    const auto fake = answering("cispo", nullptr, [&](const Case& c, LossResult& result) {
      ranks = std::max(ranks, c.split.world);
      parts_of_one |= c.split.world == 1 && c.split.parts.size() == 2;
      if (c.split.parts.size() > 3) add_to_loss(result, 1.0);
    });
    Case c = asking(Reduction::token_mean);
    c.split = {.world = 1, .parts = {{0, {0}}, {0, {2}}, {0, {1}}, {0, {3}}}};
    CaseStudy study(loss, c);
    const Diagnosis diagnosis =
        diagnose(study, fake, *find_property("split_invariance"), Violation());
    EXPECT_EQ(diagnosis.because, "") << "the parts that a probe makes are right";
    EXPECT_EQ(ranks, shardable ? 2 : 1);
    EXPECT_TRUE(parts_of_one);
  }
}

}  // namespace
}  // namespace lossgate::properties
