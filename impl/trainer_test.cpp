// SPDX-License-Identifier: Apache-2.0
#include "impl/trainer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "impl/given_toy_loss.h"
#include "impl/untidy_refusal.h"

namespace lossgate::impl {
namespace {

const LossSignature kToy = toy_signature();

/// loss = sum of x, gradient of x = 10 x, gradient of weight = sum of x, over valid positions.
LossResult sum_of_x(MicroBatch& micro_batch) {
  const Tensor& x = micro_batch.part.batch.at("x");
  Tensor per_token = Tensor::zeros(Dtype::f32, x.extents), gradient = per_token;
  double sum = 0.0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (!micro_batch.positions.valid[static_cast<std::size_t>(i)]) continue;
    per_token.set(i, x.at(i));
    gradient.set(i, 10.0 * x.at(i));
    sum += x.at(i);
  }
  Tensor loss = Tensor::zeros(Dtype::f32, {}), weight = Tensor::zeros(Dtype::f32, {1});
  loss.set(0, sum);
  weight.set(0, sum);
  LossResult result;
  result.outputs = {{"loss", loss},
                    {"per_token", per_token},
                    {"gradient.x", gradient},
                    {"gradient.weight", weight}};
  result.counts = {{"calls", 1}, {"rows", micro_batch.part.shape[Axis::sequences]}};
  return result;
}

double scalar(const LossResult& result, std::string_view output) {
  return result.find(output)->at(0);
}

Case split_case(Dtype dtype = Dtype::f32) {
  Case c = toy_case(kToy, 4, 2, dtype);  // x = 1 .. 8
  c.split = {3, {{2, {3, 0}}, {0, {1}}, {2, {}}, {2, {2}}}};
  return c;
}

TEST(Trainer, PutsRowsBackInTheirPlacesAndSumsWhatIsShared) {
  const LossResult result = train(kToy, split_case(), sum_of_x);
  EXPECT_EQ(scalar(result, "loss"), 36.0);
  EXPECT_EQ(scalar(result, "gradient.weight"), 36.0);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(result.find("per_token")->at(i), static_cast<double>(i + 1));
    EXPECT_EQ(result.find("gradient.x")->at(i), 10.0 * static_cast<double>(i + 1));
  }
  EXPECT_EQ(result.outputs.size(), 4u);
  EXPECT_EQ(result.counts.at(0).second, 4);
  EXPECT_EQ(result.counts.at(1).second, 4);
}

TEST(Trainer, GivesTheSameForTheWholeBatchAndForAnySplit) {
  const LossResult whole = train(kToy, toy_case(kToy, 4, 2), sum_of_x);
  const LossResult split = train(kToy, split_case(), sum_of_x);
  for (std::size_t i = 0; i < whole.outputs.size(); ++i) {
    EXPECT_EQ(whole.outputs[i].name, split.outputs[i].name);
    EXPECT_EQ(whole.outputs[i].tensor, split.outputs[i].tensor);
  }
}

RC_GTEST_PROP(Trainer, SumsWholeNumbersExactlyOverAnyPartition, ()) {
  Case c = toy_case(kToy, 5, 2);
  c.split.world = *rc::gen::inRange(1, 4);
  c.split.parts.resize(*rc::gen::inRange<std::size_t>(1, 6));
  for (Split::Part& part : c.split.parts) part.rank = *rc::gen::inRange(0, c.split.world);
  for (std::int64_t s = 0; s < 5; ++s) {
    c.split.parts[*rc::gen::inRange<std::size_t>(0, c.split.parts.size())].sequences.push_back(s);
  }
  const LossResult result = train(kToy, c, sum_of_x);
  RC_ASSERT(scalar(result, "loss") == 55.0);
  RC_ASSERT(*result.find("gradient.x") ==
            *train(kToy, toy_case(kToy, 5, 2), sum_of_x).find("gradient.x"));
}

TEST(Trainer, AveragesOverRanksAndUndoesIt) {
  Trainer mean{.all_reduce = Trainer::AllReduce::mean};
  EXPECT_EQ(scalar(train(kToy, split_case(), sum_of_x, mean), "loss"), 12.0);
  EXPECT_EQ(train(kToy, split_case(), sum_of_x, mean).find("gradient.x")->at(2), 10.0);
  EXPECT_EQ(train(kToy, split_case(), sum_of_x, mean).find("per_token")->at(2), 3.0);
  mean.world_power = 1;
  EXPECT_EQ(scalar(train(kToy, split_case(), sum_of_x, mean), "loss"), 36.0);
  mean.world_power = 2;
  EXPECT_EQ(scalar(train(kToy, split_case(), sum_of_x, mean), "loss"), 108.0);
}

TEST(Trainer, CanAverageOverTheMicroBatchesOfARank) {
  const Trainer trainer{.mean_over_micro_batches = true};
  // Rank 0 has x = 3, 4 in one part; rank 2 has 7, 8, 1, 2 and 5, 6 in three parts.
  EXPECT_EQ(scalar(train(kToy, split_case(), sum_of_x, trainer), "loss"), 7.0f + 29.0f / 3.0f);
}

TEST(Trainer, TellsEveryMicroBatchItsPlaceAndTheTotals) {
  Case c = split_case();
  c.batch.at("mask").set(6, 0.0);  // sequence 3
  c.batch.at("label").set(7, -100.0);
  std::vector<std::string> told;
  std::vector<std::int64_t> rows;
  train(kToy, c, [&](MicroBatch& m) {
    told.push_back(std::to_string(m.rank) + "/" + std::to_string(m.world) + " " +
                   std::to_string(m.index) + "/" + std::to_string(m.count) + " " +
                   std::to_string(m.positions.tokens) + " of " +
                   std::to_string(m.rank_totals.tokens) + " of " + std::to_string(m.totals.tokens) +
                   ", " + std::to_string(m.totals.sequences));
    rows.push_back(m.rank_totals.rows);
    EXPECT_EQ(m.totals.rows, 4);
    return sum_of_x(m);
  });
  EXPECT_EQ(told, (std::vector<std::string>{"0/3 0/1 2 of 2 of 6, 3", "2/3 0/3 2 of 4 of 6, 3",
                                            "2/3 1/3 0 of 4 of 6, 3", "2/3 2/3 2 of 4 of 6, 3"}));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 3, 3, 3}));
}

TEST(Trainer, NamesInputsThatAStepChanges) {
  const auto clobber = [](MicroBatch& m) {
    LossResult result = sum_of_x(m);
    Tensor& x = m.part.batch.at("x");
    if (x.size() > 0) x.set(0, -x.at(0));
    return result;
  };
  for (const Case& c : {toy_case(kToy, 4, 2), split_case()}) {
    const LossResult result = train(kToy, c, clobber);
    EXPECT_EQ(result.mutated, std::vector<std::string>{"x"});
    EXPECT_EQ(scalar(result, "loss"), 36.0);
  }
  EXPECT_TRUE(train(kToy, split_case(), sum_of_x).mutated.empty());
}

TEST(Trainer, NamesWhatStepsThemselvesSayThatTheyChanged) {
  const auto careless = [](MicroBatch& m) {
    LossResult result = sum_of_x(m);
    if (m.index > 0 || m.count == 1) result.mutated = {"y"};
    result.changed_settings = {"precision is low"};
    return result;
  };
  for (const Case& c : {toy_case(kToy, 4, 2), split_case()}) {
    const LossResult result = train(kToy, c, careless);
    EXPECT_EQ(result.mutated, std::vector<std::string>{"y"});
    EXPECT_EQ(result.changed_settings, std::vector<std::string>{"precision is low"});
  }
}

TEST(Trainer, GivesAStepTheWholeCaseWhateverAnEarlierOneDidToItsOwn) {
  const auto spoil = [](MicroBatch& m) {
    LossResult result = sum_of_x(m);
    m.part.batch.fields.pop_back();
    m.part.batch.at("x").extents = {1, 2, 3};
    m.part.spec.options.clear();
    m.part.split = {3, {{2, {0}}}};
    m.part.provenance.title = "spoilt";
    m.part.upstream = 7.0;
    return result;
  };
  for (const std::int64_t sequences : {4, 1, 9}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
      train(kToy, toy_case(kToy, 3, 2), spoil);
      Case c = toy_case(kToy, sequences, 2, dtype);
      c.layout = Layout::offset;
      const LossResult result = train(kToy, c, [&](MicroBatch& m) {
        EXPECT_EQ(m.part.spec, c.spec);
        EXPECT_EQ(m.part.shape, c.shape);
        EXPECT_EQ(m.part.batch, c.batch);
        EXPECT_EQ(m.part.layout, c.layout);
        EXPECT_EQ(m.part.upstream, c.upstream);
        EXPECT_TRUE(m.part.split == Split() && m.part.provenance.title.empty());
        return sum_of_x(m);
      });
      EXPECT_TRUE(result.mutated.empty());
      EXPECT_EQ(result.find("gradient.x")->dtype, dtype);
      EXPECT_EQ(result.find("per_token")->dtype, dtype == Dtype::f64 ? dtype : Dtype::f32);
    }
  }
}

TEST(Trainer, SeesNanAsUnchangedWhenItsBitsAre) {
  Case c = split_case();
  c.batch.at("x").set(0, std::nan(""));
  EXPECT_TRUE(train(kToy, c, sum_of_x).mutated.empty());
  EXPECT_TRUE(std::isnan(scalar(train(kToy, c, sum_of_x), "loss")));
}

TEST(Trainer, ReportsARefusalAtTheSequenceOfTheWholeBatch) {
  const LossResult result = train(kToy, split_case(), [](MicroBatch& m) -> LossResult {
    if (m.rank == 2) throw Refusal{"x", 1, 0, "is not to my taste"};
    return sum_of_x(m);
  });
  ASSERT_TRUE(result.refusal);
  EXPECT_EQ(result.refusal->sequence, 0);
  EXPECT_TRUE(result.outputs.empty());
}

TEST(Trainer, ReportsWhatARefusalLeftChanged) {
  const auto untidy = [](MicroBatch& m) -> LossResult {
    if (m.world == 1 || m.rank == 2) throw UntidyRefusal{{"x", 0, 0, "no"}, {"precision is low"}};
    return sum_of_x(m);
  };
  for (const Case& c : {toy_case(kToy, 4, 2), split_case()}) {
    const LossResult result = train(kToy, c, untidy);
    ASSERT_TRUE(result.refusal);
    EXPECT_EQ(result.refusal->argument, "x");
    EXPECT_EQ(result.changed_settings, std::vector<std::string>{"precision is low"});
  }
}

TEST(Trainer, RefusesAnInvalidCaseBeforeAnyStep) {
  Case c = split_case();
  c.batch.at("mask").set(0, 3.0);
  const LossResult result = train(kToy, c, [](MicroBatch& m) {
    ADD_FAILURE() << "a step was taken";
    return sum_of_x(m);
  });
  ASSERT_TRUE(result.refusal);
  EXPECT_EQ(result.refusal->argument, "mask");
}

TEST(Trainer, RoundsSixteenBitGradientsOnceAfterTheReduction) {
  // One after the other in bf16, the sum would stop growing at 256.
  Case c = toy_case(kToy, 300, 1, Dtype::bf16);
  for (std::int64_t s = 0; s < 300; ++s) c.split.parts.push_back({0, {s}});
  const auto ones = [](MicroBatch& m) {
    LossResult result = sum_of_x(m);
    for (Output& output : result.outputs) {
      if (output.name == "gradient.weight") output.tensor.set(0, 1.0);
    }
    return result;
  };
  const LossResult result = train(kToy, c, ones);
  EXPECT_EQ(result.find("gradient.weight")->dtype, Dtype::bf16);
  EXPECT_EQ(scalar(result, "gradient.weight"), 300.0);
}

TEST(Trainer, RoundsTheWholeBatchToTheDtypeOfTheResult) {
  const LossResult result = train(kToy, toy_case(kToy, 20, 8, Dtype::bf16), sum_of_x);
  EXPECT_EQ(result.find("loss")->dtype, Dtype::f32);
  EXPECT_EQ(result.find("gradient.x")->dtype, Dtype::bf16);
  EXPECT_EQ(result.find("gradient.x")->at(130), round_to(Dtype::bf16, 1310.0));
}

TEST(Trainer, PreparesTheStepBeforeDealingIt) {
  const Trainer trainer{.prepare = [](const LossSignature&, Case& c) {
    Tensor& x = c.batch.at("x");
    for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, 2.0 * x.at(i));
  }};
  const Case c = split_case();
  EXPECT_EQ(scalar(train(kToy, c, sum_of_x, trainer), "loss"), 72.0);
  EXPECT_EQ(c.batch.at("x").at(0), 1.0);
}

TEST(Trainer, TakesABatchWithoutSequences) {
  EXPECT_EQ(scalar(train(kToy, toy_case(kToy, 0, 2), sum_of_x), "loss"), 0.0);
  Case c = toy_case(kToy, 0, 2);
  c.split = {2, {{1, {}}}};
  EXPECT_EQ(scalar(train(kToy, c, sum_of_x), "loss"), 0.0);
  EXPECT_EQ(train(kToy, c, sum_of_x).find("gradient.x")->size(), 0);
}

TEST(Totals, CountWhatIsNeitherMaskedNorIgnored) {
  Case c = toy_case(kToy, 3, 2);
  c.batch.at("mask").set(0, 0.0);
  c.batch.at("label").set(1, -100.0);
  c.batch.at("label").set(2, -100.0);
  const Totals totals = count_totals(kToy, c);
  EXPECT_EQ(totals.tokens, 3);
  EXPECT_EQ(totals.sequences, 2);
}

}  // namespace
}  // namespace lossgate::impl
