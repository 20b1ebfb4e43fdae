// SPDX-License-Identifier: Apache-2.0
#include "ci/judgement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ci/errors.h"

namespace lossgate::ci {
namespace {

using corpora::Dump;
using impl::Rerun;
using Word = Judgement::Word;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor numbers(Dtype dtype, Extents extents, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(extents));
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

/// Rows 3 and 7 of a batch of 8; the last token of the second one does not count.
Dump given(std::vector<double> x = {1, 2, 3, 4}) {
  Dump dump;
  dump.fields = {{"x", numbers(Dtype::f32, {2, 2}, x)},
                 {"mask", numbers(Dtype::u8, {2, 2}, {1, 1, 1, 0})}};
  dump.differentiable = {"x"};
  dump.rows = {3, 7};
  dump.tokens = {0, 1};
  dump.whole = {8, 2};
  dump.observed = numbers(Dtype::f32, {}, {kNan});
  return dump;
}

/// The loss is the value, the gradient has it at the entry.
Rerun answer(double loss, double slope = 0.0, std::int64_t at = 0) {
  Rerun rerun;
  rerun.loss = numbers(Dtype::f32, {}, {loss});
  Tensor gradient = Tensor::zeros(Dtype::f32, {2, 2});
  gradient.set(at, slope);
  rerun.gradients = {{"x", gradient}};
  return rerun;
}

Rerun with_line(Rerun rerun, const char* operation, const char* text, bool backward,
                std::vector<std::int64_t> element = {}) {
  rerun.guilty = impl::GuiltyLine{.source = {.file = "f.py", .line = 3},
                                  .code = "code",
                                  .operation = operation,
                                  .text = text,
                                  .backward = backward,
                                  .element = std::move(element)};
  return rerun;
}

double x_at(const Dump& dump, std::int64_t i) { return dump.find_field("x")->at(i); }

TEST(Judgement, CallsALossWithFiniteGradientsInnocentWithoutACall) {
  Dump dump = given();
  dump.observed = numbers(Dtype::f32, {}, {0.5});
  dump.gradients = {{"x", Tensor::zeros(Dtype::f32, {2, 2})}};
  const Judgement judgement = judge(dump, nullptr);
  EXPECT_EQ(judgement.word, Word::innocent);
  EXPECT_EQ(judgement.why, "its input gradients are finite: look below");
}

TEST(Judgement, AsksTheFunctionWhereNothingWasObserved) {
  Dump dump = given();
  dump.observed.reset();
  EXPECT_FALSE(observed_finite(dump));
  const auto sound = [](const Dump&, bool) { return answer(1.0); };
  EXPECT_EQ(judge(dump, sound).word, Word::not_reproduced);
}

TEST(Judgement, SaysWhereNothingIsSeenHere) {
  const auto sound = [](const Dump&, bool) { return answer(1.0); };
  EXPECT_EQ(judge(given(), sound).word, Word::not_reproduced);
}

TEST(Judgement, KnowsWhetherItRunsOnWhatTheDumpWasLeftOn) {
  Dump dump = given();
  dump.run = {{"device", "cpu"}, {"torch", "2.11"}};
  impl::Greeting greeting;
  greeting.versions = {{"python", "3.12"}, {"torch", "2.11"}};
  EXPECT_TRUE(runs_as_there(dump, "cpu", greeting));
  EXPECT_FALSE(runs_as_there(dump, "cuda", greeting));
  greeting.versions[1].second = "2.10";
  EXPECT_FALSE(runs_as_there(dump, "cpu", greeting));
}

TEST(Judgement, BlamesWhatIsReadBehindTheMask) {
  const auto reads_all = [](const Dump& dump, bool) {
    return answer(x_at(dump, 3) == 0 ? 1.0 : kNan, x_at(dump, 3) == 0 ? 0.0 : kNan, 3);
  };
  Judgement judgement = judge(given(), reads_all);
  EXPECT_EQ(judgement.word, Word::guilty);
  EXPECT_EQ(judgement.cause, "non-finite value behind a mask");
  EXPECT_EQ(judgement.place, "x[7, 1]");  // of the batch, not of the dump
  EXPECT_EQ(judgement.row, 1);
  const auto mends_its_value = [](const Dump& dump, bool) {
    return answer(1.0, x_at(dump, 3) == 0 ? 0.0 : kNan, 3);
  };
  judgement = judge(given(), mends_its_value);
  EXPECT_EQ(judgement.cause, "value repaired, gradient not");
}

TEST(Judgement, CallsALossInnocentThatWasGivenNoNumbers) {
  const auto adds = [](const Dump& dump, bool) { return answer(x_at(dump, 0) + x_at(dump, 1)); };
  const Judgement judgement = judge(given({1, kNan, 3, 4}), adds);
  EXPECT_EQ(judgement.word, Word::innocent);
  EXPECT_EQ(judgement.why, "x[3, 1] was nan when it came in: look at what made it");
}

/// Of a function that moves labels itself the first of a row says what stands behind no logits.
TEST(Judgement, GoesByTheNextLabelWhereLabelsAreShifted) {
  Dump dump = given();
  dump.fields[0].second = numbers(Dtype::f32, {2, 2, 1}, {kNan, 2, 3, 4});
  dump.fields[1].second = numbers(Dtype::u8, {2, 2}, {0, 1, 1, 0});
  const RunAgain run = [](const Dump& other, bool) {
    return answer(other.find_field("x")->at(0), other.find_field("x")->at(0));
  };
  EXPECT_EQ(judge(dump, run).cause, "non-finite value behind a mask");
  const Judgement judgement = judge(dump, run, true);
  EXPECT_EQ(judgement.word, Word::innocent) << judgement.cause;
  EXPECT_NE(judgement.why.find("x[3, 0, 0] was nan when it came in"), std::string::npos)
      << judgement.why;
  // What stands by the labels themselves is moved with them.
  dump.fields[0].second = numbers(Dtype::f32, {2, 2}, {kNan, 2, 3, 4});
  EXPECT_EQ(judge(dump, run, true).cause, "non-finite value behind a mask");
}

TEST(Judgement, CallsALossInnocentWhoseGradientWasScaledTooFar) {
  Dump dump = given();
  dump.upstream = 65536;
  const auto overflows = [](const Dump& other, bool) {
    return answer(1.0, other.upstream > 1 ? kInf : 1.0);
  };
  const Judgement judgement = judge(dump, overflows);
  EXPECT_EQ(judgement.word, Word::innocent);
  EXPECT_NE(judgement.why.find("look at the loss scale"), std::string::npos);
  dump.upstream = kInf;
  EXPECT_EQ(judge(dump, overflows).word, Word::innocent);
}

TEST(Judgement, FindsARowInWhichNothingCounts) {
  Dump dump = given();
  *std::find_if(dump.fields.begin(), dump.fields.end(), [](auto& pair) {
    return pair.first == "mask";
  }) = {"mask", numbers(Dtype::u8, {2, 2}, {1, 1, 0, 0})};
  const auto divides = [](const Dump& other, bool) {
    return answer(other.find_field("mask")->at(2) == 0 ? kNan : 1.0);
  };
  EXPECT_EQ(judge(dump, divides).cause, "empty divisor");
}

TEST(Judgement, NamesTheCauseByTheOperationWhereNoExperimentMends) {
  const auto with = [](const char* operation, const char* text, bool backward) {
    return judge(given(), [=](const Dump&, bool explain) {
      const Rerun rerun = answer(backward ? 1.0 : kNan, kNan, 2);
      return explain ? with_line(rerun, operation, text, backward, {1, 0}) : rerun;
    });
  };
  EXPECT_EQ(with("exp", "0 (upstream) x inf (exp) = nan", true).cause, "clamp after exp");
  EXPECT_EQ(with("exp", "exp(100 (sub)) = inf", false).cause, "unbounded exponent");
  EXPECT_EQ(with("log", "log(0 (exp)) = -inf", false).cause, "logarithm of an underflow");
  EXPECT_EQ(with("mul", "0 (exp) x -inf (sub) = nan", false).cause, "zero times infinity");
  EXPECT_EQ(with("div", "0 (sum) / 0 (sum) = nan", false).cause, "empty divisor");
  EXPECT_EQ(with("sub", "inf (a) - inf (b) = nan", false).cause, "infinity minus infinity");
  EXPECT_EQ(with("pow", "pow(1e+30) = inf", false).cause, "overflow of a square or sum");
  EXPECT_EQ(with("sqrt", "1 (upstream) / 2 x 0 (sqrt) = inf", true).cause, "infinite slope");
  EXPECT_EQ(with("exp", "", true).place, "token [7, 0]");
}

TEST(Judgement, LeavesAForbiddenTokenToTheLoss) {
  Dump dump = given();
  dump.fields = {{"x", numbers(Dtype::f32, {2, 1, 2}, {1, -kInf, 3, 4})}};
  dump.tokens = {0};
  const auto multiplies = [](const Dump& other, bool) {
    Rerun rerun = answer(std::isinf(x_at(other, 1)) ? kNan : 1.0);
    rerun.gradients.clear();
    return rerun;
  };
  EXPECT_EQ(judge(dump, multiplies).word, Word::guilty);
}

TEST(Judgement, PassesOnWhatTheFunctionRaises) {
  const auto raises = [](const Dump&, bool) {
    Rerun rerun;
    rerun.raised = "TypeError: no";
    return rerun;
  };
  EXPECT_THROW(judge(given(), raises), InputError);
}

TEST(CountedPositions, AreThoseOfMasksAndLabels) {
  Dump dump = given();
  EXPECT_EQ(*counted_positions(dump), (std::vector<bool>{true, true, true, false}));
  dump.fields.emplace_back("y", numbers(Dtype::i64, {2, 2}, {-100, 5, 6, 7}));
  EXPECT_EQ(*counted_positions(dump), (std::vector<bool>{false, true, true, false}));
  dump.fields.erase(dump.fields.begin() + 1, dump.fields.end());
  EXPECT_FALSE(counted_positions(dump));
}

}  // namespace
}  // namespace lossgate::ci
