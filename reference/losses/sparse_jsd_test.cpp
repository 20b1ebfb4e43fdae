// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/sparse_jsd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reference/given_case.h"
#include "reference/given_one_token.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// What is refused once the teacher's first log-prob at this position is no number.
std::optional<Refusal> refused_at(Case c, std::int64_t position) {
  c.batch.at("teacher_log_prob").set(position * c.shape[Axis::support], -HUGE_VAL);
  return expected_refusal(*find_loss("sparse_jsd"), c);
}

TEST(SparseJsd, RefusesATeacherThatIsNotFiniteWhereAPositionCountsAndSaysWhere) {
  const LossSignature& signature = *find_signature("sparse_jsd");
  int named = 0, silent = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = SmallCases(signature, seed).draw(Dtype::f64);
    c.spec.set("beta", 0.5);
    const std::vector<bool> valid = valid_positions(signature, c);
    for (std::size_t p = 0; p < valid.size(); ++p) {
      const auto position = static_cast<std::int64_t>(p);
      const auto refusal = refused_at(c, position);
      ASSERT_EQ(refusal.has_value(), valid[p]) << seed << " " << p;
      ++(valid[p] ? named : silent);
      if (!refusal) continue;
      EXPECT_EQ(refusal->argument, "teacher_log_prob");
      EXPECT_EQ(refusal->sequence, position / c.shape[Axis::tokens]);
      EXPECT_EQ(refusal->token, position % c.shape[Axis::tokens]);
    }
  }
  EXPECT_GT(named, 20);
  EXPECT_GT(silent, 20);
}

TEST(SparseJsd, RefusesAListedTokenOutsideTheVocabularyAndSaysWhere) {
  const LossSignature& signature = *find_signature("sparse_jsd");
  int single = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = SmallCases(signature, seed).draw(Dtype::f64);
    const std::vector<bool> valid = valid_positions(signature, c);
    const std::int64_t support = c.shape[Axis::support];
    for (std::int64_t i = 0; i < support * static_cast<std::int64_t>(valid.size()); ++i) {
      const std::int64_t position = i / support;
      if (!valid[static_cast<std::size_t>(position)]) continue;
      Case other = c;
      other.batch.at("support_token").set(i, static_cast<double>(c.shape[Axis::vocab]));
      const auto refusal = expected_refusal(*find_loss("sparse_jsd"), other);
      ASSERT_TRUE(refusal) << seed << " " << i;
      EXPECT_EQ(refusal->argument, "support_token");
      EXPECT_EQ(refusal->sequence, position / c.shape[Axis::tokens]);
      EXPECT_EQ(refusal->token, position % c.shape[Axis::tokens]);
      single += valid.size() == 1 && support > 1;
    }
  }
  EXPECT_GT(single, 0);
}

TEST(SparseJsd, NeedsNoTeacherThatIsFiniteForTheForwardDivergence) {
  const LossSignature& signature = *find_signature("sparse_jsd");
  Case c = SmallCases(signature, 1).draw(Dtype::f64);
  c.spec.set("beta", 0.0);
  EXPECT_FALSE(refused_at(c, 0));
}

/// Cases with a tail in which the student cannot take the first `count` tokens that are listed at
/// each position, and the entries of its logits that say so. How many there were.
template <class Check>
int for_impossible_tokens(std::int64_t count, Check&& check) {
  const Loss& loss = *find_loss("sparse_jsd");
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = SmallCases(loss.signature, seed).draw(Dtype::f64);
    c.spec.set("beta", 0.5);
    c.spec.set("tail", 1.0);
    const std::int64_t vocab = c.shape[Axis::vocab], support = c.shape[Axis::support];
    if (support >= vocab || expected_refusal(loss, c)) continue;
    std::set<std::int64_t> entries;
    const Tensor& token = c.batch.at("support_token");
    for (std::int64_t i = 0; i < token.size(); ++i) {
      const std::int64_t listed = token.integer_at(i);
      if (i % support >= count || listed < 0 || listed >= vocab) continue;
      entries.insert(i / support * vocab + listed);
      c.batch.at("student_logits").set(*entries.rbegin(), -HUGE_VAL);
    }
    SCOPED_TRACE(seed);
    check(Problem(loss.signature, c), entries);
    ++cases;
  }
  return cases;
}

/// What the formula gives: each output's entries.
struct Numbers final : Sink<Tracked> {
  explicit Numbers(const Problem& problem) {
    evaluate(*find_loss("sparse_jsd"), problem, plain_arithmetic(Dtype::f64, ""), *this);
  }
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    at[{output, index}] = value;
  }
  std::map<std::pair<std::size_t, std::int64_t>, Tracked> at;
};

TEST(SparseJsd, OfASupportThatIsImpossibleIsANumberWithATail) {
  const auto check = [](const Problem& problem, const std::set<std::int64_t>&) {
    for (const auto& [at, x] : Numbers(problem).at) {
      ASSERT_TRUE(std::isfinite(x.v));
      ASSERT_TRUE(std::isfinite(x.peak)) << "nor may anybody answer NaN";
    }
  };
  EXPECT_GT(for_impossible_tokens(std::numeric_limits<std::int64_t>::max(), check), 20);
}

/// One position of a vocabulary of two, of which the teacher answered for the second; its logit.
Case listed_second(double logit) {
  Case c = zero_case(*find_signature("sparse_jsd"), 1, 1, 2, 1);
  c.batch.at("support_token").set(0, 1.0);
  c.batch.at("teacher_log_prob").set(0, -1.0);
  c.batch.at("student_logits").set(1, logit);
  return c;
}

TEST(SparseJsd, LooksAtNoLogitThatIsNotListedWithoutATail) {
  const auto finite = [](double tail, std::int64_t entry) {
    Case c = listed_second(0.5);
    c.spec.set("tail", tail);
    c.batch.at("student_logits").set(entry, std::nan(""));
    const OneToken one(c, plain_arithmetic(Dtype::f32, kShiftedForm));
    return std::isfinite(one.term.v) && std::isfinite(one.gradient.v);
  };
  EXPECT_TRUE(finite(0.0, 0));
  EXPECT_FALSE(finite(0.0, 1));
  EXPECT_FALSE(finite(1.0, 0));
}

TEST(SparseJsd, TakesTheTailsSlopeForOneThatABackwardMakesOfExpm1) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, kShiftedForm);
  for (const double logit : {-2.0, -8.0, -14.0}) {
    // By the tail's entry the slope is about -1 / 4; of the support's mass e^x it has e^x, off by
    // a rounding at 1 however small that is.
    const Tracked gradient = OneToken(listed_second(logit), single).gradient;
    EXPECT_GT(gradient.err, single.roundoff / 8.0) << logit;
    EXPECT_LT(gradient.err, single.roundoff * 40.0) << logit;
  }
}

TEST(SparseJsd, MayAddUpItsTailOfTheTokensThatAreNotListed) {
  // The tail has all but 1e-6, and a sum of nearly 1 rounds at that size: beside it the share of
  // what is not listed, less its probability, is nearly 0.
  Case c = listed_second(-14.0);
  c.batch.at("support_token").set(0, 0.0);
  c.batch.at("student_logits").set(0, -14.0);
  c.batch.at("student_logits").set(1, 0.0);
  const auto error = [&](std::string_view form) {
    return OneToken(c, plain_arithmetic(Dtype::f32, form)).gradient.err;
  };
  EXPECT_GT(error(""), 10.0 * error(std::string(kShiftedForm) + " with " + kOnceForm));
  EXPECT_LT(error(""), 16.0 * unit_roundoff(Dtype::f32));
}

TEST(SparseJsd, KnowsATailFarAboveItsFloorWhereTheFormatLosesThat) {
  // In f16 a floor of 1e-7 may be 0, and its logarithm anything below -15: a tail of a third is
  // none of that, added up or left over.
  const Arithmetic half = plain_arithmetic(Dtype::f16, "");
  const ArithmeticScope scope(half);
  const Tracked floor = -Entry<Tracked>::constant(1e-7L);
  ASSERT_EQ(log(-expm1(floor)).err, tracking::kInfinity);
  const Tracked left = Entry<Tracked>::stored(-1.0, -1), none = Entry<Tracked>::stored(-17.0, -1);
  EXPECT_EQ(log_tail_of(left, floor).v, left.v);
  EXPECT_LT(log_tail_of(left, floor).err, 1e-2);
  EXPECT_EQ(log_tail_of(none, floor).v, std::log(-std::expm1(floor.v)));
  EXPECT_GT(log_tail_of(none, floor).err, 0.5);
  const OneToken token(listed_second(-1.0), half);
  EXPECT_LT(token.term.err, 0.1);
  EXPECT_LT(token.gradient.err, 0.1);
}

TEST(SparseJsd, LetsNothingFlowToAListedTokenThatIsImpossible) {
  const auto check = [](const Problem& problem, const std::set<std::int64_t>& entries) {
    ASSERT_EQ(problem.outputs.at(2).name, "gradient.student_logits");
    const Numbers numbers(problem);
    for (const std::int64_t entry : entries) ASSERT_EQ(numbers.at.at({2, entry}).v, 0.0L);
  };
  EXPECT_GT(for_impossible_tokens(1, check), 20);
}

}  // namespace
}  // namespace lossgate::reference
