// SPDX-License-Identifier: Apache-2.0
// Tokens beside their place and tokens left out, each by what the experiment says of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

constexpr const char* kCause = "off by one position";

/// The loss of the case as `change` makes it: what is read in place of what was given.
Diagnosis of(const std::string& loss, const ChangeCase& change) {
  return diagnosed(answering(loss, change), ordinary_case(loss));
}

/// The positions for which it holds, of [sequences, tokens], masked.
template <class Holds>
ChangeCase without(const std::string& loss, Holds holds) {
  return [&signature = *reference::find_signature(loss), holds](Case& c) {
    const std::vector<bool> valid = valid_of(c);
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t p = 0; p < std::ssize(valid); ++p) {
      if (holds(valid, p, tokens)) mask_position(signature, c, p);
    }
  };
}

bool is_last_column(const std::vector<bool>&, std::int64_t p, std::int64_t tokens) {
  return tokens > 1 && p % tokens == tokens - 1;
}

bool is_last_of_its_sequence(const std::vector<bool>& valid, std::int64_t p, std::int64_t tokens) {
  const auto end = valid.begin() + (p / tokens + 1) * tokens;
  return std::find(valid.begin() + p + 1, end, true) == end;
}

bool is_first_column(const std::vector<bool>&, std::int64_t p, std::int64_t tokens) {
  return tokens > 1 && p % tokens == 0;
}

TEST(ProbePositions, SeesTokensAtAnEndThatHaveNoPart) {
  for (const std::string loss : {"cross_entropy", "value_clip", "jsd"}) {
    expect_shown(answering(loss, without(loss, is_last_column)), ordinary_case(loss), kCause,
                 "the answer is that without the last column");
    expect_shown(answering(loss, without(loss, is_first_column)), ordinary_case(loss), kCause,
                 "the answer is that without the first column");
    expect_shown(answering(loss, without(loss, is_last_of_its_sequence)), ordinary_case(loss),
                 kCause, "the answer is that without each sequence's last token");
  }
}

TEST(ProbePositions, TellsALengthAtWhichAllEndsFromAnEndThatIsLost) {
  const auto beyond = [](std::int64_t length) {
    return [=](const std::vector<bool>&, std::int64_t p, std::int64_t tokens) {
      return p % tokens >= length;
    };
  };
  for (const std::int64_t length : {2, 4}) {
    expect_shown(answering("value_clip", without("value_clip", beyond(length))),
                 ordinary_case("value_clip"), "wrong beyond a length",
                 "the answer is that without what lies behind " + std::to_string(length) +
                     " tokens, and right where nothing does");
  }
}

TEST(ProbePositions, TakesNoSequenceForAnotherThatIsAsLongAsWhatIsLeftOfIt) {
  // Two tokens of three have the weights of a sequence of two.
  const auto two =
      answering("grpo", without("grpo", [](const std::vector<bool>&, std::int64_t p,
                                           std::int64_t tokens) { return p % tokens >= 2; }));
  Case c = grpo_case(2, 3, Dtype::f64);
  c.spec.reduction = Reduction::sequence_mean;
  for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob"}) {
    change_each(c.batch.at(field), [](double) { return -1.0; });
  }
  change_each(c.batch.at("advantage"), [](double) { return 1.0; });
  mask_out(c, 1, 2);
  CaseStudy study(grpo(), c);
  const Violation violation;
  Suspect suspect(study, two, violation);
  EXPECT_FALSE(probe_rows(suspect));
  const Opinion opinion = probe_positions(suspect);
  ASSERT_TRUE(opinion);
  EXPECT_EQ(opinion->cause, "wrong beyond a length");
}

TEST(ProbePositions, SeesWhatOnlyASequenceShowsThatEndsWhereTheBatchDoes) {
  // Its last value stands for the one behind it.
  const auto bootstrapped = answering("gae", [](Case& c) {
    const std::vector<bool> valid = valid_of(c);
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t p = tokens - 1; p < std::ssize(valid); p += tokens) {
      Tensor& reward = c.batch.at("reward");
      const double value = c.batch.at("value").at(p);
      const bool full = std::all_of(valid.begin() + p - (tokens - 1), valid.begin() + p + 1,
                                    [](bool each) { return each; });
      if (full) reward.set(p, reward.at(p) + c.spec.number("gamma") * value);
    }
  });
  expect_shown(bootstrapped, ordinary_case("gae"), "full row mistaken",
               "right where nothing counts in the last column");
}

/// A change of the case of which the answer is divided by the tokens that there were before.
impl::Implementation divided_by_all(const std::string& loss, const ChangeCase& change) {
  const auto changed = answering(loss, change);
  return answering(loss, nullptr, [change, changed](const Case& c, LossResult& result) {
    Case other = c;
    change(other);
    const auto count = [](const Case& at) {
      const std::vector<bool> valid = valid_of(at);
      return static_cast<double>(std::ranges::count(valid, true));
    };
    result = changed.evaluate(*reference::find_signature(c.spec.loss), c);
    if (c.spec.reduction != Reduction::token_mean || result.refusal) return;
    for (const char* name : {"loss", "gradient.value"}) {
      change_each(output(result, name), [&](double x) { return x * count(other) / count(c); });
    }
  });
}

TEST(ProbePositions, SeesThemWhereTheCountIsThatOfBefore) {
  Case c = ordinary_case("value_clip");
  c.spec.reduction = Reduction::token_mean;
  expect_shown(divided_by_all("value_clip", without("value_clip", is_last_column)), c, kCause,
               "the answer is that without the last column");
}

/// The field with what stood at a token one token on or back, round the end of its sequence.
ChangeCase moving(const std::string& field, std::int64_t by) {
  return [field, by](Case& c) {
    const Tensor given = c.batch.at(field);
    const std::int64_t tokens = c.shape[Axis::tokens];
    const std::int64_t positions = c.shape[Axis::sequences] * tokens;
    const std::int64_t each = positions > 0 ? given.size() / positions : 1;
    for (std::int64_t i = 0; i < given.size(); ++i) {
      const std::int64_t p = i / each, row = p / tokens;
      const std::int64_t from = row * tokens + (p % tokens - by + tokens) % tokens;
      c.batch.at(field).set(i, given.at(from * each + i % each));
    }
  };
}

TEST(ProbePositions, SeesAFieldThatIsATokenBesideItsPlace) {
  expect_shown(answering("cross_entropy", moving("label", -1)), ordinary_case("cross_entropy"),
               kCause, "the answer is that with label one token back");
  expect_shown(answering("value_clip", moving("return", 1)), ordinary_case("value_clip"), kCause,
               "the answer is that with return one token on");
  expect_shown(answering("value_clip", moving("value", 1)), ordinary_case("value_clip"), kCause,
               "the answer is that with value one token on");
}

TEST(ProbePositions, SeesLabelsThatAreShiftedTwice) {
  const auto twice = [](Case& c) {
    moving("label", -1)(c);
    without("cross_entropy", is_last_column)(c);
  };
  expect_shown(answering("cross_entropy", twice), ordinary_case("cross_entropy"), kCause,
               "the answer is that with label one token back, and without the end");
}

TEST(ProbePositions, SeesAMaskThatIsATokenBesideItsPlace) {
  const auto on = [](Case& c) {
    const std::int64_t tokens = c.shape[Axis::tokens];
    moving("mask", 1)(c);
    for (std::int64_t p = 0; p < c.batch.at("mask").size(); p += tokens)
      c.batch.at("mask").set(p, 0);
  };
  expect_shown(answering("value_clip", on), ordinary_case("value_clip"), kCause,
               "the answer is that with mask one token on");
}

TEST(ProbePositions, SaysNothingOfATermThatIsWrongAtOneEnd) {
  const auto doubled = answering("value_clip", nullptr, [](const Case& c, LossResult& result) {
    const std::int64_t tokens = c.shape[Axis::tokens];
    Tensor& gradient = output(result, "gradient.value");
    for (std::int64_t p = tokens - 1; p < gradient.size(); p += tokens) {
      gradient.set(p, 2.0 * gradient.at(p));
    }
    add_to_loss(result, 0.25);
  });
  EXPECT_NE(diagnosed(doubled, ordinary_case("value_clip")).cause, kCause);
  EXPECT_NE(of("grpo", [](Case& c) { c.spec.set("clip_low", 0.05); }).cause, kCause);
}

}  // namespace
}  // namespace lossgate::properties
