// SPDX-License-Identifier: Apache-2.0
// Numbers that are taken for a mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/plain_case.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Whether no position that counts of that one's sequence has an advantage.
bool has_none(const Case& c, std::int64_t position) {
  const std::int64_t tokens = c.shape[Axis::tokens], from = position - position % tokens;
  for (std::int64_t p = from; p < from + tokens; ++p) {
    if (c.batch.at("mask").at(p) != 0.0 && c.batch.at("advantage").at(p) != 0.0) return false;
  }
  return true;
}

/// A case of which one sequence has none.
Case with_a_solved_prompt(Reduction reduction) {
  Case c = ordinary_case("grpo");
  c.spec.reduction = reduction;
  const std::int64_t tokens = c.shape[Axis::tokens];
  for (std::int64_t p = tokens; p < 2 * tokens; ++p) c.batch.at("advantage").set(p, 0.0);
  return c;
}

TEST(Sentinels, SeesThatASequenceWithoutAnAdvantageDoesNotCount) {
  const auto fake = answering("grpo", [](Case& c) {
    for (std::int64_t p = 0; p < c.batch.at("mask").size(); ++p) {
      if (has_none(c, p)) c.batch.at("mask").set(p, 0.0);
    }
  });
  expect_shown(fake, with_a_solved_prompt(Reduction::token_mean), "wrong divisor",
               "a sequence whose advantage is 0 throughout does not count");
}

TEST(Sentinels, SeesAZeroThatIsTakenForAMask) {
  const auto fake = answering("value_clip", [](Case& c) {
    for (std::int64_t p = 0; p < c.batch.at("mask").size(); ++p) {
      c.batch.at("mask").set(p, c.batch.at("return").at(p) != 0.0);
    }
  });
  Case c = ordinary_case("value_clip");
  at_positions(c, false, [&](std::int64_t p) { c.batch.at("return").set(p, 0.5); });
  expect_shown(fake, c, "sentinel compared", "a position whose return is 0 does not count");
}

/// GRPO without the tokens that were kept from it, and a case with one whose log-probs are that
/// low.
impl::Implementation without(bool (*is_dropped)(double log_prob, double old)) {
  return answering("grpo", [is_dropped](Case& c) {
    at_positions(c, true, [&](std::int64_t p) {
      const double own = c.batch.at("log_prob").at(p), old = c.batch.at("old_log_prob").at(p);
      if (is_dropped(own, old)) c.batch.at("mask").set(p, 0.0);
    });
  });
}

/// The first token has that log-prob under all models.
Case with_an_unlikely_token(double log_prob) {
  Case c = ordinary_case("grpo");
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob"}) {
    c.batch.at(field).set(0, log_prob);
  }
  return c;
}

TEST(Sentinels, SeesALogProbThatIsTakenForAMask) {
  const auto lower = without([](double, double old) { return old <= -100.0; });
  expect_shown(lower, with_an_unlikely_token(-150.0), "sentinel compared",
               "a position whose log-probs are below about -100 does not count");
  const auto marked = without([](double, double old) { return old == -100.0; });
  expect_shown(marked, with_an_unlikely_token(-100.0), "sentinel compared",
               "a position whose log-probs are -100 does not count");
  const auto far = without([](double own, double old) { return own - old > 50.0; });
  Case c = with_an_unlikely_token(-150.0);
  c.batch.at("old_log_prob").set(0, -250.0);
  EXPECT_FALSE(speaks(probe_masked_terms, far, c));
}

/// Takes the position's term, and its gradient, out of an answer whose divisor counts it.
void lose(const Case& c, LossResult& result, std::int64_t position, const char* gradient) {
  const CaseStudy study(*reference::find_loss(c.spec.loss), c);
  const auto row = static_cast<std::size_t>(position / c.shape[Axis::tokens]);
  Tensor &terms = output(result, "per_token"), &slopes = output(result, gradient);
  add_to_loss(result, -terms.at(position) *
                          token_weight(c.spec, c.spec.reduction, BatchCounts(study), row));
  terms.set(position, 0.0);
  const std::int64_t each = slopes.size() / terms.size();
  for (std::int64_t i = 0; i < each; ++i) slopes.set(position * each + i, 0.0);
}

TEST(Sentinels, SeesAZeroThatLosesItsTermAndIsCounted) {
  for (const Reduction reduction : reference::find_signature("value_clip")->reductions) {
    const auto fake = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
      at_positions(c, true, [&](std::int64_t p) {
        if (c.batch.at("return").at(p) == 0.0) lose(c, result, p, "gradient.value");
      });
      at_positions(c, false, [&](std::int64_t p) {
        if (c.batch.at("return").at(p) != 0.0) add_to_loss(result, 1.0);
      });
    });
    Case c = ordinary_case("value_clip");
    c.spec.reduction = reduction;
    at_positions(c, false, [&](std::int64_t p) { c.batch.at("return").set(p, 0.5); });
    expect_shown(fake, c, "sentinel compared", "a position whose return is 0 does not count");
  }
}

TEST(Sentinels, SeesASequenceWithoutAnAdvantageThatLosesItsTermsAndIsCounted) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (has_none(c, p)) lose(c, result, p, "gradient.log_prob");
    });
  });
  for (const Reduction reduction : reference::find_signature("grpo")->reductions) {
    expect_shown(fake, with_a_solved_prompt(reduction), "sentinel compared",
                 "a sequence whose advantage is 0 throughout adds nothing");
  }
}

TEST(Sentinels, TakesADeadGradientOfALossThatIsOtherwiseWrongForNoMask) {
  const auto fake = answering("grpo", nullptr, [](const Case& c, LossResult& result) {
    add_to_loss(result, 0.01);
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("old_log_prob").at(p) > -0.25) output(result, "gradient.log_prob").set(p, 0.0);
    });
  });
  EXPECT_NE(diagnosed(fake, ordinary_case("grpo")).cause, "sentinel compared");
}

/// CISPO that divides a sequence of which nothing is masked by one position less.
impl::Implementation divided_by_one_less() {
  return answering("cispo", nullptr, [](const Case& c, LossResult& result) {
    const CaseStudy study(*reference::find_loss("cispo"), c);
    Tensor &terms = output(result, "per_token"), &slopes = output(result, "gradient.log_prob");
    const std::int64_t tokens = c.shape[Axis::tokens];
    const std::vector<bool> valid = valid_of(c);
    for (std::int64_t from = 0; from < std::ssize(valid); from += tokens) {
      if (std::count(valid.begin() + from, valid.begin() + from + tokens, true) < tokens) continue;
      const double more = 1.0 / (static_cast<double>(tokens) - 1.0);
      const auto row = static_cast<std::size_t>(from / tokens);
      const double weight = token_weight(c.spec, c.spec.reduction, BatchCounts(study), row);
      for (std::int64_t p = from; p < from + tokens; ++p) {
        add_to_loss(result, more * weight * terms.at(p));
        slopes.set(p, (1.0 + more) * slopes.at(p));
      }
    }
  });
}

TEST(Sentinels, TakesACountOfOneLessForNoMask) {
  // One advantage of 0 adds nothing: without its position the answer is right.
  Case c = ordinary_case("cispo");
  c.spec.reduction = Reduction::sequence_mean;
  ASSERT_NE(diagnosed(divided_by_one_less(), c).cause, "held");
  EXPECT_FALSE(speaks(probe_masked_terms, divided_by_one_less(), c));
}

/// GRPO that leaves out the tokens of which an old log-prob says so.
impl::Implementation without(bool (*left_out)(double)) {
  return answering("grpo", [left_out](Case& c) {
    for (std::int64_t p = 0; p < c.batch.at("mask").size(); ++p) {
      if (left_out(c.batch.at("old_log_prob").at(p))) c.batch.at("mask").set(p, 0.0);
    }
  });
}

TEST(Sentinels, SeesATokenThatWasCertainLeftOutOfWhatIsRightOtherwise) {
  const auto fake = without([](double x) { return x == 0.0; });
  Case c = ordinary_case("grpo");
  c.batch.at("old_log_prob").set(0, 0.0);
  const char* because = "a position whose old_log_prob is 0 does not count";
  expect_shown(fake, c, "sentinel compared", because);
  // A NaN beside the 0 is lost for no other reason.
  expect_shown_of_lost(fake, c, "sentinel compared", because);
}

TEST(Sentinels, TakesWhatIsLeftOutBesideZeroAsWellForNoMask) {
  Case c = ordinary_case("grpo");
  c.batch.at("old_log_prob").set(0, -0.125);
  const auto fake = without([](double x) { return x > -0.25; });
  EXPECT_FALSE(speaks(probe_masked_terms, fake, c));
}

/// What is said where masks are tried, of labels of as many tokens.
Opinion of_masks(const impl::Implementation& fake, std::int64_t vocab = 5) {
  const reference::Loss& loss = *reference::find_loss("cross_entropy");
  Case like = ordinary_case("cross_entropy");
  like.shape[Axis::vocab] = vocab;
  const Violation violation{};
  CaseStudy study(loss, plain_case(loss.signature, like).value());
  Suspect suspect(study, fake, violation);
  return probe_masked_terms(suspect);
}

/// The token is taken for padding wherever it is the label.
impl::Implementation with_padding_token(double token) {
  return answering("cross_entropy", [token](Case& c) {
    Tensor& label = c.batch.at("label");
    change_each(label, [&](double x) { return x == token ? -100.0 : x; });
  });
}

TEST(Sentinels, SeesALabelThatIsTakenForAMask) {
  for (const double token : {0.0, 2.0}) {
    // Whether the plain case has that label (of 5 tokens) or not (of 6, it has no 0).
    for (const std::int64_t vocab : {5, 6}) {
      const Opinion opinion = of_masks(with_padding_token(token), vocab);
      ASSERT_TRUE(opinion) << token << " of " << vocab;
      EXPECT_EQ(opinion->cause, "sentinel compared");
      EXPECT_EQ(opinion->because, "a position whose label is " +
                                      std::to_string(static_cast<int>(token)) + " does not count");
    }
  }
}

TEST(Sentinels, SeesALastLabelThatIsTakenForAMask) {
  for (const std::int64_t vocab : {5, 6}) {
    const Opinion opinion = of_masks(with_padding_token(static_cast<double>(vocab - 1)), vocab);
    ASSERT_TRUE(opinion) << vocab;
    EXPECT_EQ(opinion->because, "a position whose label is the last class does not count");
  }
}

TEST(Sentinels, SeesALabelThatLosesItsTermAndIsCounted) {
  const auto fake = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("label").at(p) == 0.0) lose(c, result, p, "gradient.logits");
    });
  });
  const Opinion opinion = of_masks(fake);
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->because, "a position whose label is 0 does not count");
}

TEST(Sentinels, TakesATermThatIsWrongForALabelForNoMask) {
  const auto fake = answering("cross_entropy", nullptr, [](const Case& c, LossResult& result) {
    at_positions(c, true, [&](std::int64_t p) {
      if (c.batch.at("label").at(p) == 0.0) add_to_loss(result, 0.03);
    });
  });
  EXPECT_FALSE(of_masks(fake));
}

}  // namespace
}  // namespace lossgate::properties
