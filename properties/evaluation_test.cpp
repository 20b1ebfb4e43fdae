// SPDX-License-Identifier: Apache-2.0
#include "properties/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/property.h"
#include "properties/sibling.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;
using Entries = std::map<std::pair<std::size_t, std::int64_t>, Tracked>;

/// Selected log-probs of two sequences of two tokens.
Case log_prob_case(std::int64_t vocab) {
  const LossSignature& signature = *reference::find_signature("log_prob");
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 2;
  c.shape[Axis::vocab] = vocab;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, is_float(dtype) ? std::sin(static_cast<double>(i)) : static_cast<double>(i));
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

constexpr std::int64_t kSmall = 8, kStreamed = 80'000;

Arithmetic arithmetic(Dtype dtype = Dtype::f32) {
  return plain_arithmetic(dtype, reference::find_signature("log_prob")->forms.front());
}

Entries entries_of(CaseStudy& study, const Arithmetic& under,
                   CaseStudy::Wanted wanted = CaseStudy::Wanted::everything) {
  Entries entries;
  const auto keep = [&](std::size_t o, std::int64_t i, const Tracked& x) { entries[{o, i}] = x; };
  study.for_each_expected(under, false, keep, wanted);
  return entries;
}

bool same(const Tracked& a, const Tracked& b) {
  return a.v == b.v && a.err == b.err && a.peak == b.peak && a.half == b.half;
}

class CaseStudyOf : public testing::TestWithParam<std::int64_t> {
 protected:
  CaseStudy study{*reference::find_loss("log_prob"), log_prob_case(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(KeptAndStreamed, CaseStudyOf, testing::Values(kSmall, kStreamed));

TEST_P(CaseStudyOf, GivesTheSameValuesWithoutGradientsAsWithThem) {
  Entries all = entries_of(study, arithmetic());
  const Entries values = entries_of(study, arithmetic(), CaseStudy::Wanted::values);
  EXPECT_EQ(values.size(), 1U + 4U + 4U);
  EXPECT_EQ(all.size(), values.size() + 4U * static_cast<std::size_t>(GetParam()));
  for (const auto& [at, x] : values) {
    EXPECT_NE(study.outputs()[at.first].kind, OutputKind::gradient);
    EXPECT_TRUE(same(x, all.at(at)));
  }
}

TEST_P(CaseStudyOf, KeepsNoCaseOfManyEntries) {
  // What streams is computed while it is seen, under an arithmetic that is in scope.
  bool computing = false;
  study.any_expected(arithmetic(), false, [&](std::size_t, std::int64_t, const Tracked&) {
    computing = reference::tracking::current != nullptr;
    return true;
  });
  EXPECT_EQ(computing, GetParam() == kStreamed);
}

TEST_P(CaseStudyOf, LooksNoFurtherThanTheEntryThatIsSought) {
  int seen = 0;
  const auto third = [&](std::size_t, std::int64_t, const Tracked&) { return ++seen == 3; };
  EXPECT_TRUE(study.any_expected(arithmetic(), false, third));
  EXPECT_EQ(seen, 3);
  const auto none = [](std::size_t, std::int64_t, const Tracked&) { return false; };
  EXPECT_FALSE(study.any_expected(arithmetic(), false, none));
}

TEST_P(CaseStudyOf, ShowsTwoArithmeticsSideBySide) {
  Entries one = entries_of(study, arithmetic()), other = entries_of(study, arithmetic(Dtype::f64));
  std::size_t seen = 0;
  const auto visit = [&](std::size_t o, std::int64_t i, const Tracked& x, const Tracked& y) {
    ++seen;
    EXPECT_TRUE(same(x, one.at({o, i})) && same(y, other.at({o, i})));
  };
  study.for_each_pair(arithmetic(), arithmetic(Dtype::f64), visit);
  EXPECT_EQ(seen, one.size());
}

TEST(CaseStudy, MakesNoGradientsOfADerivedCaseThatIsAskedForValues) {
  std::vector<std::size_t> asked;
  reference::Loss own = *reference::find_loss("log_prob");
  own.advice = {.values = [&](const reference::Problem& problem, const Arithmetic& under,
                              reference::Sink<Tracked>& sink) {
    asked.push_back(problem.outputs.size());
    reference::evaluate(*reference::find_loss("log_prob"), problem, under, sink);
  }};
  CaseStudy study(own, log_prob_case(kSmall));
  const std::size_t everything = study.outputs().size();
  CaseStudy& derived = *study.derived(kRepeated);
  for (CaseStudy* each : {&study, &derived}) {
    entries_of(*each, arithmetic(), CaseStudy::Wanted::values);
    entries_of(*each, arithmetic(), CaseStudy::Wanted::values);
  }
  EXPECT_EQ(asked, (std::vector{everything, everything - 1}));
  entries_of(derived, arithmetic());
  entries_of(derived, arithmetic(), CaseStudy::Wanted::values);
  EXPECT_EQ(asked.size(), 3U) << "what is known serves for values, too";
}

TEST(CaseStudy, AsksAFunctionOfOnesOwnOneQuestionAtATime) {
  std::atomic<int> inside = 0, most = 0;
  reference::Loss own = *reference::find_loss("log_prob");
  own.advice = {.values = [&](const reference::Problem& problem, const Arithmetic& under,
                              reference::Sink<Tracked>& sink) {
    most = std::max(most.load(), ++inside);
    reference::evaluate(*reference::find_loss("log_prob"), problem, under, sink);
    --inside;
  }};
  CaseStudy study(own, log_prob_case(kStreamed));
  study.for_each_pair(arithmetic(), arithmetic(Dtype::f64),
                      [](std::size_t, std::int64_t, const Tracked&, const Tracked&) {});
  EXPECT_EQ(most, 1);
}

/// The bound of the loss, of the whole batch or of its parts put together.
double loss_bound(CaseStudy& study, const Arithmetic& arithmetic, bool split) {
  double error = 0.0;
  study.for_each_expected(arithmetic, split,
                          [&](std::size_t o, std::int64_t, const reference::Tracked& x) {
                            if (study.outputs()[o].kind == OutputKind::loss) error = x.err;
                          });
  return error;
}

TEST(CaseStudy, KeepsWhatIsExpectedOfTheWholeApartFromTheParts) {
  Case c = grpo_case(4, 8);
  c.split = {.world = 2, .parts = {{0, {0}}, {1, {1}}, {0, {2}}, {1, {3}}}};
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  CaseStudy one(grpo(), c), other(grpo(), c);
  const double whole = loss_bound(one, single, false);
  const double parts = loss_bound(one, single, true);
  EXPECT_NE(whole, parts);
  EXPECT_EQ(loss_bound(other, single, true), parts);
  EXPECT_EQ(loss_bound(other, single, false), whole);
}

TEST(CaseStudy, HasNoSiblingThatDoesNotComputeIt) {
  Case refused = grpo_case(1, 2);
  put(refused, "mask", 0, 1, 2.0);
  auto fake = fake_grpo();
  fake.unsupported = [](const Case&) { return std::nullopt; };
  CaseStudy legal(grpo(), grpo_case(1, 2)), illegal(grpo(), refused),
      beyond(grpo(), grpo_case(1, 2));
  give_sibling(legal, fake);
  give_sibling(illegal, fake);
  fake.unsupported = [](const Case&) { return std::optional<std::string>("nothing"); };
  give_sibling(beyond, fake);
  EXPECT_TRUE(legal.sibling);
  EXPECT_FALSE(illegal.sibling);
  EXPECT_FALSE(beyond.sibling);
}

TEST(Problem, OfNoSequenceHasNone) {
  const Case c = grpo_case(0, 3);
  const reference::Problem problem(grpo().signature, c);
  EXPECT_EQ(problem.sequences, 0);
  EXPECT_EQ(problem.tokens, 3);
  EXPECT_TRUE(problem.row_tokens.empty());
}

TEST(Problem, OfALossWithoutTokensCountsEachSequenceOnce) {
  const LossSignature& signature = *reference::find_signature("prompt_dedup");
  const Case c = ordinary_case("prompt_dedup", Dtype::f32);
  ASSERT_LT(c.shape[Axis::tokens], 0) << "no such axis";
  const reference::Problem problem(signature, c);
  EXPECT_EQ(problem.tokens, 1);
  EXPECT_EQ(problem.sequences, c.shape[Axis::sequences]);
  EXPECT_EQ(problem.token_count, problem.sequences);
  EXPECT_EQ(problem.sequence_count, problem.sequences);
}

TEST(CaseStudy, KeepsWhatIsExpectedOfEachArithmetic) {
  CaseStudy study(grpo(), grpo_case(2, 3));
  const double single = loss_bound(study, plain_arithmetic(Dtype::f32, ""), false);
  EXPECT_LT(loss_bound(study, plain_arithmetic(Dtype::f64, ""), false), single);
  EXPECT_EQ(loss_bound(study, plain_arithmetic(Dtype::f32, ""), false), single);
}

/// Answers 0 throughout, and counts its calls.
impl::Implementation zero_answering() {
  impl::Implementation zero;
  zero.name = "zero";
  zero.loss = "log_prob";
  zero.unsupported = [](const Case&) { return std::nullopt; };
  zero.arithmetic = [](Dtype dtype) { return arithmetic(dtype); };
  zero.evaluate = [](const LossSignature& signature, const Case& c) {
    LossResult result;
    for (const OutputInfo& info : outputs_of(signature, c)) {
      result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
    }
    return result;
  };
  return zero;
}

TEST(Evaluation, KeepsWhatASmallCaseGaveWhenItIsForgotten) {
  CaseStudy study(*reference::find_loss("log_prob"), log_prob_case(kSmall));
  const impl::Implementation zero = zero_answering();
  Evaluation evaluation(study, zero);
  study.transformed(kRepeated);
  evaluation.actual(kRepeated);
  evaluation.forget(kRepeated);
  evaluation.actual(kRepeated);
  EXPECT_EQ(evaluation.calls(), 1);
}

/// What is bit for bit the base's is not compared again; one entry that is not must be.
TEST(Evaluation, SeesAGradientThatOnlyPaddingChanges) {
  const Case c = ordinary_case("grpo");
  const auto fails = [&](bool last, double factor) {
    const impl::Implementation given =
        answering("grpo", nullptr, [&](const Case& asked, LossResult& result) {
          if (asked.shape[Axis::tokens] == c.shape[Axis::tokens]) return;
          Tensor& gradient = result.outputs.back().tensor;
          std::vector<std::int64_t> slopes;
          for (std::int64_t i = 0; i < gradient.size(); ++i) {
            if (gradient.at(i) != 0.0) slopes.push_back(i);
          }
          const std::int64_t changed = last ? slopes.back() : slopes.front();
          gradient.set(changed, factor * gradient.at(changed));
        });
    CaseStudy study(*reference::find_loss("grpo"), c);
    Evaluation evaluation(study, given);
    return find_property("padding_invariance")->check(evaluation).verdict == Verdict::violated;
  };
  EXPECT_TRUE(valid_of(c).front()) << "the first entry of all";
  for (const bool last : {false, true}) {
    EXPECT_FALSE(fails(last, 1.0));
    EXPECT_TRUE(fails(last, 1.001)) << last;
  }
}

}  // namespace
}  // namespace lossgate::properties
