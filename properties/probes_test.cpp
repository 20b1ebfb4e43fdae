// SPDX-License-Identifier: Apache-2.0
// Each probe with an implementation that has its cause, and with a neighbour that has not.
#include "properties/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "reference/spec/elements.h"

namespace lossgate::properties {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double log_ratio(const Case& c, std::int64_t p) {
  return c.batch.at("log_prob").at(p) - c.batch.at("old_log_prob").at(p);
}

/// GRPO whose loss is no number where a valid log-ratio is larger.
impl::Implementation overflowing_beyond(double limit) {
  return answering("grpo", nullptr, [limit](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (log_ratio(c, p) > limit) add_to_loss(result, kNan);
    });
  });
}

Case far_case(double log_ratio) {
  Case c = ordinary_case("grpo");
  Tensor& old = c.batch.at("old_log_prob");
  old.set(0, c.batch.at("log_prob").at(0) - log_ratio);
  return c;
}

bool has_empty_row(const Case& c) {
  const std::vector<bool> valid = valid_of(c);
  const auto tokens = static_cast<std::ptrdiff_t>(c.shape[Axis::tokens]);
  for (auto row = valid.begin(); row != valid.end(); row += tokens) {
    if (std::find(row, row + tokens, true) == row + tokens) return true;
  }
  return false;
}

Case with_empty_row() {
  Case c = ordinary_case("grpo");
  for (std::int64_t t = 0; t < 5; ++t) mask_out(c, 2, t);
  return c;
}

// What lies behind the mask.

TEST(ProbeMaskedTerms, SeesDataThatReachesTheLossAlone) {
  Case c = grpo_case(4, 4);
  mask_out(c, 1, 2);
  expect_shown(fake_grpo(Flaw::masked_data_read), c, "masked data leaks",
               "other numbers behind the mask change the result");
}

TEST(ProbeMaskedTerms, SeesDataOfATermThatTheCaseLeavesOff) {
  const auto leaks = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const double penalty = c.spec.number("kl_penalty");
    at_positions(c, false, [&](std::int64_t p) {
      add_to_loss(result, penalty * c.batch.at("ref_log_prob").at(p));
    });
  });
  Case c = ordinary_case("grpo");
  c.spec.set("kl_penalty", 0.0);
  expect_shown(leaks, c, "masked data leaks", "other numbers behind the mask change the result");
}

TEST(ProbeBehindMask, SeesEveryKindOfNumberThatBreaksTheLoss) {
  const auto broken_by = [](bool (*kind)(double)) {
    return answering("grpo", nullptr, [kind](const Case& c, LossResult& result) {
      at_positions(c, false, [&](std::int64_t p) {
        if (kind(c.batch.at("log_prob").at(p))) add_to_loss(result, kNan);
      });
    });
  };
  for (const auto kind :
       {+[](double x) { return x == HUGE_VAL; }, +[](double x) { return x == -HUGE_VAL; },
        +[](double x) { return std::isnan(x); },
        +[](double x) { return x >= 1e4 && std::isfinite(x); },
        +[](double x) { return x <= -1e4 && std::isfinite(x); }}) {
    expect_shown(broken_by(kind), ordinary_case("grpo"), "non-finite value behind a mask",
                 "what is made of data behind the mask is no number, and reaches the loss");
  }
}

TEST(ProbeEmpty, IsAskedWhereASequenceIsEmptyAndNowhereElse) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (has_empty_row(c)) add_to_loss(result, kNan);
    at_positions(c, true, [&](std::int64_t p) {
      if (log_ratio(c, p) > 50.0) add_to_loss(result, kNan);
    });
  });
  expect_shown(fake, with_empty_row(), "empty divisor",
               "where nothing counts, zeros give no number");
  EXPECT_EQ(diagnosed(fake, far_case(1000.0)).cause, "narrow arithmetic");
}

TEST(ProbeEmpty, SeesWhatAnEmptySequenceAloneBreaksOfWhoPromisesZeros) {
  auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const bool counts = std::ranges::count(valid_of(c), true) > 0;
    if (counts && has_empty_row(c)) add_to_loss(result, kNan);
  });
  EXPECT_EQ(diagnosed(fake, with_empty_row()).cause, "empty divisor");
  for (const Empty promised : {Empty::nan, Empty::error}) {
    fake.contract.empty = promised;
    EXPECT_NE(diagnosed(fake, with_empty_row()).cause, "empty divisor");
  }
}

// Edges.

TEST(ProbeDeadClamp, TiesTheClampToTheOverflow) {
  const auto unclamped = answering("grpo", [](Case& c) { c.spec.set("log_ratio_clamp", None{}); });
  Case c = far_case(1000.0);
  put(c, "advantage", 0, 0, -1.0);
  expect_shown(unclamped, c, "dead clamp", "beyond log_ratio_clamp the answer is that without it");
}

TEST(ProbeExponents, TellsTheDeclaredFormatFromANarrowerOne) {
  expect_shown(overflowing_beyond(709.0), far_case(1000.0), "clamp after exp",
               "right where no log-ratio overflows exp");
  expect_shown(overflowing_beyond(88.0), far_case(1000.0), "narrow arithmetic",
               "it overflows where the declared format has room for squares and exponentials");
  // What counts is how far policies are apart, not how unlikely a token is.
  Case unlikely = far_case(1000.0);
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob"}) {
    change_each(unlikely.batch.at(field), [](double x) { return x - 400.0; });
  }
  expect_shown(overflowing_beyond(709.0), unlikely, "clamp after exp",
               "right where no log-ratio overflows exp");
}

TEST(ProbeExponents, LooksFartherAwayWhereNothingOverflowsYet) {
  const auto drifting = [](double from, double to) {
    return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t p) {
        if (log_ratio(c, p) > from) add_to_loss(result, log_ratio(c, p) > to ? kNan : 1.0);
      });
    });
  };
  expect_shown(drifting(30.0, 709.0), far_case(100.0), "clamp after exp",
               "right where log-ratios are near, and overflows where they are farther");
  EXPECT_NE(diagnosed(drifting(30.0, 1e9), far_case(100.0)).cause, "clamp after exp");
  EXPECT_NE(diagnosed(drifting(1.0, 709.0), far_case(100.0)).cause, "clamp after exp");
}

/// The first token is impossible everywhere; the likeliest is another at each position, and what is
/// to be predicted is that of the position or of the one before.
Case impossible_first() {
  Case c = ordinary_case("cross_entropy");
  const std::int64_t vocab = c.shape[Axis::vocab];
  Tensor &logits = c.batch.at("logits"), &label = c.batch.at("label");
  const auto likeliest = [](std::int64_t p) { return 1 + p % 4; };
  at_positions(c, true, [&](std::int64_t p) {
    logits.set(p * vocab, -HUGE_VAL);
    logits.set(p * vocab + likeliest(p), 5.0);
    label.set(p, static_cast<double>(likeliest(p % 2 == 0 ? p : p - 1)));
  });
  return c;
}

TEST(ProbeLogits, MovesTheLabelsWithTheTokens) {
  // A maximum that starts at minus infinity; nor does it bear an impossible label.
  const auto fake = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t vocab = c.shape[Axis::vocab];
    const Tensor& logits = c.batch.at("logits");
    at_positions(c, true, [&](std::int64_t p) {
      const std::int64_t taken = c.batch.at("label").integer_at(p);
      const bool bad =
          logits.at(p * vocab) == -HUGE_VAL || logits.at(p * vocab + taken) == -HUGE_VAL;
      if (!bad) return;
      add_to_loss(result, kNan);
      output(result, "gradient.logits").set(p * vocab, kNan);
    });
  });
  Case c = impossible_first();
  const char* because = "right where the likeliest token comes first in the vocabulary";
  expect_shown(fake, c, "infinity minus infinity", because);
  for (std::int64_t v = 0; v < c.shape[Axis::vocab]; ++v) {
    c.batch.at("logits").set(v, v == 0 ? 5.0 : -HUGE_VAL);  // there the first is the likeliest
  }
  c.batch.at("label").set(0, 0.0);
  expect_shown(fake, c, "infinity minus infinity", because);
}

TEST(ProbeLogits, SaysNothingOfALossThatIsGivenNone) {
  const auto fake = answering("linear_grpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& bias = c.batch.at("bias");
    for (std::int64_t v = 0; v < bias.size(); ++v) {
      if (bias.at(v) > 88.0) add_to_loss(result, kNan);
    }
  });
  Case c = ordinary_case("linear_grpo");
  c.batch.at("bias").set(2, 90.0);
  EXPECT_NE(diagnosed(fake, c).cause, "exp of an unshifted logit");
}

/// Whether the position's probabilities underflow, and where its largest logit is.
struct Peak {
  std::int64_t at = 0;
  double above = 0.0;  ///< the second
};

Peak peak(const Case& c, std::int64_t p) {
  const std::int64_t vocab = c.shape[Axis::vocab];
  const Tensor& logits = c.batch.at("logits");
  std::vector<std::pair<double, std::int64_t>> row;
  for (std::int64_t v = 0; v < vocab; ++v) row.emplace_back(logits.at(p * vocab + v), v);
  std::ranges::sort(row, std::greater<>());
  return {row[0].second, row[0].first - row[1].first};
}

Case peaked_case() {
  Case c = ordinary_case("cross_entropy");
  c.batch.at("logits").set(2, 20.0);
  return c;
}

TEST(ProbeLogits, IsLessSureOfAnUnderflowThatLeavesNumbers) {
  const auto off = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (peak(c, p).above > 100.0) add_to_loss(result, 1.0);
    });
  });
  Case beyond = ordinary_case("cross_entropy", Dtype::f32);  // which lacks other probabilities
  beyond.batch.at("logits").set(2, 120.0);
  const Diagnosis diagnosis = diagnosed(off, beyond);
  EXPECT_EQ(diagnosis.cause, "logarithm of an underflow");
  EXPECT_LT(diagnosis.confidence, 0.9);
}

TEST(ProbeFilteredGradient, IsNotMisledByTheLossOfALargeEntry) {
  const auto lost = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      const Peak top = peak(c, p);
      if (top.above <= 15.0) return;
      output(result, "gradient.logits").set(p * c.shape[Axis::vocab] + top.at, 0.0);
    });
  });
  EXPECT_NE(diagnosed(lost, peaked_case()).cause, "gradient filtered");
}

// Gradients, weights and options.

TEST(ProbeGradient, SeesThatANormaliserWasTakenForAConstant) {
  const auto constant = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    Tensor& gradient = output(result, "gradient.logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t p) {
      const std::int64_t taken = c.batch.at("label").integer_at(p);
      double others = 0.0;
      for (std::int64_t v = 0; v < vocab; ++v) {
        if (v == taken) continue;
        others += gradient.at(p * vocab + v);
        gradient.set(p * vocab + v, 0.0);
      }
      // The formula's is (p - 1) w, and the others sum to (1 - p) w: w it is where p is 1/5.
      gradient.set(p * vocab + taken, -1.25 * others);
    });
  });
  expect_shown(constant, ordinary_case("cross_entropy"), "dead signal",
               "it does not sum to 0 over the vocabulary");
}

TEST(ProbeGradient, TakesNoScaledGradientForOneWithoutItsNormaliser) {
  const auto scaled = answering("cross_entropy", nullptr, [](const Case&, LossResult& result) {
    change_each(output(result, "gradient.logits"), [](double g) { return 0.73 * g; });
  });
  EXPECT_EQ(diagnosed(scaled, ordinary_case("cross_entropy")).cause,
            "backward is not the derivative");
}

TEST(ProbeWeights, CountsThePaddingOfAllSequences) {
  const auto by_positions = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.spec.reduction != Reduction::token_mean) return;
    const std::vector<bool> valid = valid_of(c);
    const double factor =
        static_cast<double>(std::ranges::count(valid, true)) / static_cast<double>(valid.size());
    for (const char* name : {"loss", "gradient.log_prob"}) {
      change_each(output(result, name), [&](double x) { return factor * x; });
    }
  });
  Case c = ordinary_case("grpo");
  c.spec.reduction = Reduction::token_mean;
  expect_shown(by_positions, c, "padding counted", "terms are divided by all positions");
}

TEST(Plain, AsksTheReductionsThatAnOptionNames) {
  // The case shows a number that is too large; what is behind shows under another reduction.
  const auto fake = answering("advantage_scaling", nullptr, [](const Case& c, LossResult& result) {
    const std::vector<bool> valid = valid_of(c);
    const bool tokens = c.spec.choice("normalisation") == "token_mean";
    const double factor = tokens ? static_cast<double>(std::ranges::count(valid, true)) /
                                       static_cast<double>(valid.size())
                                 : 1.0;
    for (Output& each : result.outputs) {
      change_each(each.tensor,
                  [&](double x) { return std::fabs(x) > 20.0 ? 2.0 * x : factor * x; });
    }
  });
  Case c = ordinary_case("advantage_scaling");
  c.spec.set("normalisation", std::string("sequence_mean"));
  c.batch.at("advantage").set(0, 1e6);
  expect_shown(fake, c, "padding counted", "terms are divided by all positions");
}

TEST(Plain, AsksForNumbersBeyondTheBoundsWhereOrdinaryOnesAreRight) {
  const auto narrower = answering("grpo", [](Case& c) { c.spec.set("log_ratio_clamp", 5.0); });
  Case c = far_case(20.0);
  c.spec.set("log_ratio_clamp", 8.0);
  c.spec.set("kl_input_clamp", 5.0);
  put(c, "advantage", 0, 0, -1.0);
  expect_shown(narrower, c, "option misread",
               "the answer is that of another value of log_ratio_clamp");
}

TEST(Plain, AsksNothingThatTheImplementationDoesNotTake) {
  auto fake = overflowing_beyond(88.0);
  fake.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.spec.reduction == Reduction::token_mean && c.split.whole()) return std::nullopt;
    return "other reductions";
  };
  Case c = far_case(1000.0);
  c.spec.reduction = Reduction::token_mean;
  EXPECT_EQ(diagnosed(fake, c).cause, "narrow arithmetic");
  auto off = answering("grpo", nullptr, [](const Case& x, LossResult& result) {
    at_positions(x, true, [&](std::int64_t p) {
      if (log_ratio(x, p) > 100.0) add_to_loss(result, 1.0);
    });
  });
  off.unsupported = fake.unsupported;
  EXPECT_EQ(diagnosed(off, c).cause, "disagrees with the formula");
  off.unsupported = [](const Case& x) {
    const bool far = std::ranges::any_of(elements_of(x.batch.at("log_prob")),
                                         [](double p) { return p < -20.0; });
    return far ? std::optional<std::string>("far numbers") : std::nullopt;
  };
  EXPECT_EQ(diagnosed(off, c).cause, "disagrees with the formula");
}

// Splits.

Case split_case(Reduction reduction, int world) {
  Case c = ordinary_case("grpo");
  c.spec.reduction = reduction;
  c.split = {.world = world, .parts = {{0, {0, 2}}, {world - 1, {1}}, {world - 1, {3}}}};
  return c;
}

TEST(ProbeSplit, SeesTheMeanOfMeansOfOneRank) {
  Case c = grpo_case(4, 5);
  for (std::int64_t t = 1; t < 5; ++t) mask_out(c, 1, t);
  c.split = {.world = 1, .parts = {{0, {0, 2}}, {0, {1}}, {0, {3}}}};
  expect_shown(fake_grpo(Flaw::mean_of_means), c, "mean of means",
               "each part is divided by its own count");
}

TEST(ProbeSplit, TakesNoTraceForAFactor) {
  const auto traced = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.split.whole()) return;
    for (const char* name : {"loss", "gradient.log_prob"}) {
      change_each(output(result, name), [](double x) { return (1.0 + 1e-5) * x; });
    }
  });
  EXPECT_EQ(diagnosed(traced, split_case(Reduction::token_mean, 1)).because, "");
}

TEST(ProbeSplit, BlamesNoRankForWhatOneRankDoes) {
  const auto off = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (!c.split.whole()) add_to_loss(result, 0.37);
  });
  EXPECT_EQ(diagnosed(off, split_case(Reduction::token_mean, 1)).because, "");
}

/// Each rank takes the mean over its own tokens, or the sum, and ranks are averaged.
void average_ranks(const Case& c, LossResult& result) {
  std::map<std::int64_t, int> rank_of;
  std::map<int, double> tokens;
  double all = 0.0;
  for (const Split::Part& part : c.split.parts) {
    for (const std::int64_t row : part.sequences) rank_of[row] = part.rank;
  }
  const std::int64_t each = c.shape[Axis::tokens];
  at_positions(c, true, [&](std::int64_t p) { tokens[rank_of[p / each]] += 1.0, all += 1.0; });
  const bool mean = c.spec.reduction == Reduction::token_mean;
  Tensor& gradient = output(result, "gradient.log_prob");
  double loss = 0.0;
  at_positions(c, true, [&](std::int64_t p) {
    const double weight = mean ? 1.0 / tokens[rank_of[p / each]] : 1.0;
    loss += weight / c.split.world * output(result, "per_token").at(p);
    gradient.set(p, gradient.at(p) * weight * (mean ? all : 1.0) / c.split.world);
  });
  output(result, "loss").set(0, loss);
}

TEST(ProbeSplit, AsksForAMeanOverTokensWhateverTheCaseHas) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.split.world > 1) average_ranks(c, result);
  });
  expect_shown(fake, split_case(Reduction::sum, 2), "mean of means",
               "each part is divided by its own count");
}

}  // namespace
}  // namespace lossgate::properties
