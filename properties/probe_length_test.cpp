// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/plain_case.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// GRPO whose loss is off where a sequence is longer than that, and where `always`.
impl::Implementation off_beyond(std::int64_t tokens, bool always = false) {
  return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
    if (always || c.shape[Axis::tokens] > tokens) add_to_loss(result, 1.0);
  });
}

/// An ordinary case of that vocabulary.
Case long_row(std::int64_t vocab) {
  Case c = ordinary_case("cross_entropy");
  c.shape[Axis::vocab] = vocab;
  Tensor& logits = c.batch.at("logits");
  logits = Tensor::zeros(logits.dtype, {c.shape[Axis::sequences], c.shape[Axis::tokens], vocab});
  for (std::int64_t i = 0; i < logits.size(); ++i) logits.set(i, static_cast<double>(i % 7));
  return c;
}

TEST(ProbeLength, FindsWhereALengthEnds) {
  expect_shown(off_beyond(1000), grpo_case(2, 1800, Dtype::f64), "wrong beyond a length",
               "plain numbers are right where tokens is 1000, and wrong where it is 1001");
}

TEST(ProbeLength, FindsTheEndOfARow) {
  const auto one_block = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    if (c.shape[Axis::vocab] > 512) add_to_loss(result, 1.0);
  });
  expect_shown(one_block, long_row(600), "wrong beyond a length",
               "plain numbers are right where vocab is 512, and wrong where it is 513");
}

TEST(ProbeLength, FindsWhatOneLengthInTwoShows) {
  const auto odd = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t tokens = c.shape[Axis::tokens];
    if (tokens > 700 && (tokens % 2 != 0 || !c.split.whole())) add_to_loss(result, 1.0);
  });
  Case c = grpo_case(2, 1800, Dtype::f64);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1}}}};
  const auto found = diagnosed(odd, c);
  EXPECT_EQ(found.cause, "wrong beyond a length");
  EXPECT_TRUE(
      found.because.ends_with("but not where it is one more: it is this length, or what lies "
                              "at its blocks' ends"))
      << found.because;
}

TEST(ProbeLength, BlamesNoRoundingForWhatIsNoNumber) {
  const auto ends = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.shape[Axis::tokens] <= 1000) return;
    const bool erratic = static_cast<std::int64_t>(c.batch.at("log_prob").at(0) * 4096) % 2 == 0;
    output(result, "loss").set(0, erratic ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_EQ(diagnosed(ends, grpo_case(2, 1800, Dtype::f64)).cause, "wrong beyond a length");
}

TEST(ProbeLength, FindsWhatIsWrongAfterTheFirstRow) {
  const auto second = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    const bool is_one = c.shape[Axis::sequences] * c.shape[Axis::tokens] == 1;
    if (c.shape[Axis::vocab] > 512 && !is_one) add_to_loss(result, 1.0);
  });
  expect_shown(second, long_row(600), "wrong beyond a length",
               "plain numbers are right where vocab is 512, and wrong where it is 513");
}

TEST(ProbeLength, TellsASumThatRoundsFromALengthThatEnds) {
  const auto half = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& terms = *result.find("per_token");
    double exact = 0.0, rounded = 0.0;
    for (std::int64_t i = 0; i < terms.size(); ++i) {
      exact += terms.at(i);
      rounded = round_to(Dtype::f16, rounded + terms.at(i));
    }
    if (c.shape[Axis::tokens] > 32) add_to_loss(result, (rounded - exact) / 2048);
  });
  const auto found = diagnosed(half, grpo_case(2, 1800, Dtype::f64));
  EXPECT_EQ(found.cause, "narrow arithmetic") << found.because;
  EXPECT_EQ(found.because, "roundings add up: from 33 tokens on they are beyond the bound");
}

TEST(ProbeLength, LeavesWhatIsWrongAtAnyLengthAlone) {
  EXPECT_NE(diagnosed(off_beyond(0, true), grpo_case(2, 1800, Dtype::f64)).cause,
            "wrong beyond a length");
}

TEST(ProbeLength, SaysNothingOfLengthsThatAreRefused) {
  auto refuses = off_beyond(0, true);
  refuses.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.shape[Axis::tokens] > 32) return std::nullopt;
    return "tiles of 512 tokens";
  };
  EXPECT_NE(diagnosed(refuses, grpo_case(2, 1800, Dtype::f64)).cause, "wrong beyond a length");
}

TEST(ProbeLength, FindsTheEndOfAShortLength) {
  expect_shown(off_beyond(20), grpo_case(2, 32, Dtype::f64), "wrong beyond a length",
               "plain numbers are right where tokens is 20, and wrong where it is 21");
  expect_shown(off_beyond(16), grpo_case(2, 40, Dtype::f64), "wrong beyond a length",
               "plain numbers are right where tokens is 16, and wrong where it is 17");
  const auto eight = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    if (c.shape[Axis::vocab] > 8) add_to_loss(result, 1.0);
  });
  expect_shown(eight, long_row(11), "wrong beyond a length",
               "plain numbers are right where vocab is 8, and wrong where it is 9");
}

TEST(ProbeLength, LeavesAnEndThatMovesWithAnOptionToTheOption) {
  const auto larger = answering("grpo", [](Case& c) {
    const auto tokens = static_cast<double>(c.shape[Axis::tokens]);
    c.spec.set("max_length", std::max(c.spec.number("max_length"), tokens));
  });
  Case c = grpo_case(2, 32, Dtype::f64);
  c.spec.reduction = Reduction::seq_mean_token_sum_norm;
  c.spec.set("max_length", 16.0);
  expect_shown(larger, c, "option misread",
               "plain numbers are right where tokens is 16, and wrong where it is 17; that end "
               "moves with max_length");
}

TEST(ProbeLength, TakesANumberThatFewNumbersLackForNoLength) {
  // The 22nd of plain numbers is the first such one, in another set another one.
  const auto far = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      const double log_ratio = c.batch.at("log_prob").at(p) - c.batch.at("old_log_prob").at(p);
      if (log_ratio > 1.5) add_to_loss(result, 1.0);
    });
  });
  Case c = grpo_case(2, 32, Dtype::f64);
  put_log_ratio(c, 0, 2, 1.75);
  EXPECT_NE(diagnosed(far, c).cause, "wrong beyond a length");
}

TEST(ProbeLength, LeavesWhatAShortBatchShowsAlone) {
  // Four sequences of five tokens at most have more than eight tokens.
  const auto many = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (std::ranges::count(valid_of(c), true) > 8) add_to_loss(result, 1.0);
  });
  EXPECT_NE(diagnosed(many, grpo_case(2, 32, Dtype::f64)).cause, "wrong beyond a length");
}

/// GRPO whose loss is off where `single` says so of a shape.
impl::Implementation off_where(bool (*single)(const Shape&)) {
  return answering("grpo", nullptr, [=](const Case& c, LossResult& result) {
    if (single(c.shape)) add_to_loss(result, 1.0);
  });
}

TEST(ProbeSingle, FindsWhatOneSequenceAloneOrOneTokenShows) {
  const auto one_sequence = off_where([](const Shape& s) { return s[Axis::sequences] == 1; });
  expect_shown(one_sequence, grpo_case(1, 7, Dtype::f64), "single one mistaken",
               "plain numbers are right where sequences is 2, and wrong where it is 1");
  const auto one_token = off_where([](const Shape& s) { return s[Axis::tokens] == 1; });
  expect_shown(one_token, grpo_case(3, 1, Dtype::f64), "single one mistaken",
               "plain numbers are right where tokens is 2, and wrong where it is 1");
  const auto one_position =
      off_where([](const Shape& s) { return s[Axis::sequences] * s[Axis::tokens] == 1; });
  expect_shown(one_position, grpo_case(1, 1, Dtype::f64), "single one mistaken",
               "plain numbers are right where sequences and tokens are 2, and wrong where they are "
               "1");
}

TEST(ProbeSingle, FindsWhatAPartOfOneSequenceShows) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const auto is_one = [](const Split::Part& part) { return part.sequences.size() == 1; };
    if (c.shape[Axis::sequences] == 1 || std::ranges::any_of(c.split.parts, is_one)) {
      add_to_loss(result, 1.0);
    }
  });
  Case c = grpo_case(3, 7, Dtype::f64);
  c.split = {.world = 1, .parts = {{0, {0}}, {0, {1, 2}}}};
  expect_shown(fake, c, "single one mistaken",
               "plain numbers are right where sequences is 2, and wrong where it is 1");
}

TEST(ProbeSingle, SaysNothingOfWhatTwoShowToo) {
  const auto few = off_where([](const Shape& s) { return s[Axis::sequences] <= 2; });
  for (const std::int64_t sequences : {1, 2}) {
    const auto found = diagnosed(few, grpo_case(sequences, 7, Dtype::f64));
    EXPECT_FALSE(found.cause.empty());
    EXPECT_NE(found.cause, "single one mistaken");
  }
}

/// Plain numbers with one of the axis.
Case of_one(const std::string& loss, Axis axis) {
  return plain_case(*reference::find_signature(loss), ordinary_case(loss),
                    {.padding = false, .few = {axis}, .at_most = 1})
      .value();
}

TEST(ProbeSingle, SaysNothingOfWhatTwoThatAreAlikeShow) {
  // Of two plain sequences one is undesirable.
  const auto without_undesirable = answering("kto", nullptr, [](const Case& c, LossResult& result) {
    const Tensor& desirable = c.batch.at("desirable");
    bool all = true;
    for (std::int64_t s = 0; s < desirable.size(); ++s) all &= desirable.at(s) != 0.0;
    if (all) add_to_loss(result, 1.0);
  });
  const Case c = of_one("kto", Axis::sequences);
  ASSERT_NE(diagnosed(without_undesirable, c).cause, "held");
  EXPECT_FALSE(speaks(probe_single, without_undesirable, c));
}

/// Cross-entropy whose loss is off where `wrong` says so of a row's logits and its label's.
impl::Implementation off_of_logits(bool (*wrong)(const std::vector<double>& row, double own)) {
  return answering("cross_entropy", nullptr, [wrong](const Case& c, LossResult& result) {
    const Tensor& logits = c.batch.at("logits");
    const std::int64_t vocab = c.shape[Axis::vocab];
    at_positions(c, true, [&](std::int64_t p) {
      std::vector<double> row;
      for (std::int64_t v = 0; v < vocab; ++v) row.push_back(logits.at(p * vocab + v));
      const auto label = static_cast<std::size_t>(c.batch.at("label").integer_at(p));
      if (wrong(row, row[label])) add_to_loss(result, 1.0);
    });
  });
}

TEST(ProbeSingle, TellsOneClassFromOneThatIsCertain) {
  const auto certain = off_of_logits([](const std::vector<double>& row, double own) {
    double sum = 0.0;
    for (const double x : row) sum += std::exp(x - own);
    return 1.0 / sum > 0.999;
  });
  const auto alone =
      off_of_logits([](const std::vector<double>& row, double) { return row.size() == 1; });
  const Case c = of_one("cross_entropy", Axis::vocab);
  ASSERT_NE(diagnosed(certain, c).cause, "held");
  EXPECT_FALSE(speaks(probe_single, certain, c));
  EXPECT_TRUE(speaks(probe_single, alone, c));
}

TEST(ProbeSingle, SaysNothingOfAnErrorThatTwoHardlyHide) {
  // As large beside what is accepted as a constant that is added to a count of tokens makes it.
  const auto added = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    const double share = c.shape[Axis::tokens] == 1 ? 3.0 : 0.75;
    const auto sound =
        Reading::of(*reference::find_loss("grpo"), answering("grpo", nullptr), c).value();
    for (const ReadEntry& e : sound.entries()) {
      if (sound.outputs()[e.output].name == "loss") add_to_loss(result, share * e.accepted);
    }
  });
  const Case c = grpo_case(3, 1, Dtype::f64);
  ASSERT_NE(diagnosed(added, c).cause, "held");
  EXPECT_FALSE(speaks(probe_single, added, c));
}

TEST(ProbeSingle, SaysNothingOfRoundings) {
  const auto rounds = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    if (c.shape[Axis::sequences] > 1) return;
    change_each(output(result, "loss"),
                [](double x) { return std::ldexp(std::rint(std::ldexp(x, 24)), -24); });
  });
  CaseStudy study(*reference::find_loss("grpo"), grpo_case(1, 7, Dtype::f64));
  const Violation violation;
  Suspect suspect(study, rounds, violation);
  EXPECT_FALSE(probe_single(suspect));
}

}  // namespace
}  // namespace lossgate::properties
