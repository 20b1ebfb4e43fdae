// SPDX-License-Identifier: Apache-2.0
#include "properties/split_cause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "properties/agreement.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"

namespace lossgate::properties {
namespace {

/// Ragged rows, in micro-batches of which some are on another rank.
Case split_case(int world) {
  Case c = grpo_case(5, 4);
  for (std::int64_t s = 0; s < 4; ++s) {
    for (std::int64_t t = 0; t < s; ++t) mask_out(c, s, t);
  }
  c.split = {.world = world,
             .parts = {{0, {4}}, {world - 1, {}}, {world - 1, {0, 1, 3}}, {0, {2}}}};
  return c;
}

/// A sound implementation whose results are changed once they are put together.
template <class Change>
impl::Implementation changed(Change change) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [change, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    return change(signature, c, sound);
  };
  return fake;
}

LossResult scaled(LossResult result, double factor) {
  for (Output& output : result.outputs) {
    if (output.name == "per_token") continue;
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      output.tensor.set(i, output.tensor.at(i) * factor);
    }
  }
  return result;
}

std::string cause(const impl::Implementation& implementation, const Case& c) {
  const Outcome outcome = check("split_invariance", implementation, c);
  return outcome.violation ? outcome.violation->cause : std::string(name(outcome.verdict));
}

TEST(SplitCause, IsTheMeanOfMeansOfPartsWhateverTheRanks) {
  EXPECT_EQ(cause(fake_grpo(Flaw::mean_of_means), split_case(1)), "mean of means");
  EXPECT_EQ(cause(fake_grpo(Flaw::mean_of_means), split_case(2)), "mean of means");
}

TEST(SplitCause, IsTheDivisorOfAPartWithoutAToken) {
  const auto divided =
      changed([](const LossSignature& signature, const Case& c, const auto& sound) {
        LossResult result = sound(signature, c);
        const std::vector<bool> valid = valid_positions(signature, c);
        const bool empty = std::ranges::find(valid, true) == valid.end();
        if (empty || !c.split.whole()) result.outputs.front().tensor.set(0, std::nan(""));
        return result;
      });
  Case c = split_case(1);
  EXPECT_EQ(cause(divided, c), "reduction over the wrong scope") << "each part has a token";
  for (std::int64_t t = 0; t < 4; ++t) mask_out(c, 4, t);
  EXPECT_EQ(cause(divided, c), "empty divisor");
}

TEST(SplitCause, IsTheRanksWhereThePartsOfOneRankAreRight) {
  const auto averaged = [](double power) {
    return changed([power](const LossSignature& signature, const Case& c, const auto& sound) {
      return scaled(sound(signature, c), std::pow(c.split.world, power));
    });
  };
  EXPECT_EQ(cause(averaged(-1.0), split_case(2)), "rank average");
  EXPECT_EQ(cause(averaged(1.0), split_case(2)), "rank average");
  EXPECT_EQ(cause(averaged(-1.0), split_case(1)), "held");
  // Half of a sum is the mean of what the two ranks give, too.
  Case sum = split_case(2);
  sum.spec.reduction = Reduction::sum;
  EXPECT_EQ(cause(averaged(-1.0), sum), "rank average");
}

TEST(SplitCause, StaysOpenWhereNoExperimentExplainsTheLoss) {
  const auto last_part_lost =
      changed([](const LossSignature& signature, const Case& c, const auto& sound) {
        Case part = c;
        if (!part.split.whole()) {
          for (const std::int64_t row : part.split.parts.back().sequences) {
            for (std::int64_t t = 0; t < 4; ++t) mask_out(part, row, t);
          }
        }
        return sound(signature, part);
      });
  EXPECT_EQ(cause(last_part_lost, split_case(1)), "reduction over the wrong scope");
}

TEST(SplitCause, IsSeenInTheGradientsWhereTheLossIsNone) {
  Case c = split_case(2);
  c.spec.reduction = Reduction::token_mean;
  const auto right_loss = [](const impl::Implementation& wrong) {
    return changed([wrong](const LossSignature& signature, const Case& given, const auto& sound) {
      LossResult result = wrong.evaluate(signature, given);
      result.outputs.front() = sound(signature, given).outputs.front();
      return result;
    });
  };
  EXPECT_EQ(cause(right_loss(fake_grpo(Flaw::mean_of_means)), c), "mean of means");
}

TEST(SplitCause, IsSeenInTheGradientsOfWhicheverSequenceIsWrong) {
  Case c = split_case(2);
  c.spec.reduction = Reduction::token_mean;
  for (std::int64_t row = 0; row < 5; ++row) {
    const auto wrong_there =
        changed([row](const LossSignature& signature, const Case& given, const auto& sound) {
          LossResult result = sound(signature, given);
          const LossResult wrong = fake_grpo(Flaw::mean_of_means).evaluate(signature, given);
          const Tensor& from = *wrong.find("gradient.log_prob");
          const bool whole = given.split.whole();
          for (std::int64_t t = 0; !whole && t < 4; ++t) {
            result.outputs.back().tensor.set(4 * row + t, from.at(4 * row + t));
          }
          return result;
        });
    EXPECT_EQ(cause(wrong_there, c), "mean of means") << row;
  }
}

TEST(SplitCause, IsTheMeanOfMeansWhetherPartsWithoutATokenCountOrNot) {
  // Of four parts one is empty: a mean over three is 4/3 of that over all.
  const auto over_live =
      changed([](const LossSignature& signature, const Case& c, const auto& /*sound*/) {
        LossResult result = fake_grpo(Flaw::mean_of_means).evaluate(signature, c);
        return c.split.whole() ? result : scaled(std::move(result), 4.0 / 3.0);
      });
  EXPECT_EQ(cause(over_live, split_case(1)), "mean of means");
}

TEST(SplitCause, IsTheMeanOfMeansWhereARankHasNoPart) {
  Case c = split_case(2);
  c.split.world = 3;
  EXPECT_EQ(cause(fake_grpo(Flaw::mean_of_means), c), "mean of means");
  const auto by_rank =
      changed([](const LossSignature& signature, const Case& given, const auto& sound) {
        if (given.split.world == 1) return sound(signature, given);
        // Each rank divides by its own tokens, and ranks are averaged.
        LossResult result = sound(signature, given);
        std::map<int, std::int64_t> tokens;
        std::int64_t all = 0;
        std::map<std::int64_t, int> rank_of;
        const auto valid = valid_positions(signature, given);
        for (const Split::Part& part : given.split.parts) {
          for (const std::int64_t row : part.sequences) {
            rank_of[row] = part.rank;
            for (std::int64_t t = 0; t < 4; ++t) {
              const bool counts = valid[static_cast<std::size_t>(4 * row + t)];
              tokens[part.rank] += counts, all += counts;
            }
          }
        }
        double loss = 0.0;
        const Tensor per_token = *result.find("per_token");
        for (Output& output : result.outputs) {
          if (output.name != "gradient.log_prob") continue;
          for (const auto& [row, rank] : rank_of) {
            const double weight = 1.0 / (static_cast<double>(tokens[rank]) * given.split.world);
            for (std::int64_t i = 4 * row; i < 4 * row + 4; ++i) {
              loss += weight * per_token.at(i);
              output.tensor.set(i, output.tensor.at(i) * static_cast<double>(all) * weight);
            }
          }
        }
        result.outputs.front().tensor.set(0, loss);
        return result;
      });
  EXPECT_EQ(cause(by_rank, c), "mean of means");
}

TEST(SplitCause, IsNoMeanOfWhatIsWrongInAPartByItself) {
  // A sequence that is a batch by itself has no gradient: 0 is the mean of zeros.
  const auto dead_alone =
      changed([](const LossSignature& signature, const Case& given, const auto& sound) {
        LossResult result = sound(signature, given);
        Tensor& gradient = result.outputs.back().tensor;
        const auto kill = [&gradient](std::int64_t row) {
          for (std::int64_t t = 0; t < 4; ++t) gradient.set(4 * row + t, 0.0);
        };
        if (given.shape[Axis::sequences] == 1) kill(0);
        for (const Split::Part& part : given.split.parts) {
          if (part.sequences.size() == 1) kill(part.sequences.front());
        }
        return result;
      });
  EXPECT_EQ(cause(dead_alone, split_case(1)), "disagrees with the formula");
  const auto dead =
      changed([](const LossSignature& signature, const Case& given, const auto& sound) {
        LossResult result = sound(signature, given);
        change_each(result.outputs.back().tensor, [](double) { return 0.0; });
        return result;
      });
  EXPECT_EQ(cause(dead, split_case(1)), "disagrees with the formula") << "so is the whole batch";
}

TEST(SplitCause, IsSeenBesideAFieldWithoutAxes) {
  reference::Loss loss = grpo();
  loss.signature.fields.push_back({.name = "scale", .axes = {}});
  Case c = split_case(1);
  c.batch.fields.emplace_back("scale", Tensor::zeros(Dtype::f32, {}));
  CaseStudy study(loss, c);
  const auto fake = fake_grpo(Flaw::mean_of_means);
  Evaluation evaluation(study, fake);
  const Outcome outcome = find_property("split_invariance")->check(evaluation);
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->cause, "mean of means");
}

}  // namespace
}  // namespace lossgate::properties
