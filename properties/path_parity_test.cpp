// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "corpora/text_codec.h"
#include "impl/catalog.h"
#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/sibling.h"
#include "reference/given_case.h"

namespace lossgate::properties {
namespace {

/// What parity says of `second` beside its sibling `first`.
Outcome beside(const reference::Loss& loss, const Case& c, const impl::Implementation& first,
               const impl::Implementation& second) {
  CaseStudy study(loss, c);
  give_sibling(study, first);
  Evaluation evaluation(study, second);
  return find_property("path_parity")->check(evaluation);
}

TEST(PathParity, ComparesLaterImplementationsWithTheFirstSoundOne) {
  CaseStudy study(grpo(), grpo_case(2, 3));
  const Property& parity = *find_property("path_parity");
  const auto with = [&](const char* name, Flaw flaw, double amount) {
    impl::Implementation fake = fake_grpo(flaw, amount);
    fake.name = name;
    Evaluation evaluation(study, fake);
    return parity.check(evaluation);
  };
  EXPECT_EQ(with("faulty", Flaw::slope_biased, 1e-4).verdict, Verdict::vacuous);
  EXPECT_EQ(with("first", Flaw::none, 0).verdict, Verdict::vacuous);
  EXPECT_EQ(with("second", Flaw::none, 0).verdict, Verdict::held);
  const Outcome drifted = with("third", Flaw::slope_biased, 1e-4);
  ASSERT_TRUE(drifted.violation);
  EXPECT_EQ(drifted.violation->cause, "paths drift apart");
  const Violation& v = *drifted.violation;
  EXPECT_NEAR(v.error_ratio * v.allowed / reference::kThreshold,
              static_cast<double>(std::fabs(v.actual - v.expected)),
              1e-6 * v.error_ratio * v.allowed);
  EXPECT_EQ(with("fourth", Flaw::value_biased, 1e-4).verdict, Verdict::violated);
}

TEST(PathParity, ComparesEveryOutput) {
  for (const std::size_t wrong : {0, 1, 2}) {
    CaseStudy study(grpo(), grpo_case(2, 3));
    auto fake = fake_grpo();
    Evaluation first(study, fake);
    find_property("path_parity")->check(first);
    fake.name = "second";
    fake.evaluate = [wrong, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
      LossResult result = sound(signature, c);
      Tensor& tensor = result.outputs[wrong].tensor;
      tensor.set(0, tensor.at(0) + 1e-2);
      return result;
    };
    Evaluation second(study, fake);
    const Outcome outcome = find_property("path_parity")->check(second);
    ASSERT_TRUE(outcome.violation) << wrong;
    EXPECT_EQ(outcome.violation->place.output, study.outputs()[wrong].name);
  }
}

TEST(PathParity, AllowsEachPathItsOwnErrorAndItsOwnSideOfAKink) {
  // At the edge of the clip one path may pass the gradient on and the other may not.
  Case c = grpo_case(1, 1);
  c.spec.set("kl_penalty", 0.0);
  put(c, "advantage", 0, 0, 1.0);
  put_log_ratio(c, 0, 0, static_cast<float>(std::log(1.2)));
  const auto passing = [](double slope) {
    impl::Implementation fake = fake_grpo();
    fake.name = std::to_string(slope);
    fake.unsupported = [](const Case&) { return std::nullopt; };
    fake.evaluate = [slope, sound = fake.evaluate](const LossSignature& signature, const Case& x) {
      LossResult result = sound(signature, x);
      result.outputs.back().tensor.set(0, slope);
      return result;
    };
    return fake;
  };
  const auto verdict = [&](double one, double other) {
    return beside(grpo(), c, passing(one), passing(other));
  };
  EXPECT_EQ(verdict(-1.2, 0.0).verdict, Verdict::held);
  EXPECT_EQ(verdict(-0.6, -0.3).worst_ratio, 0.0);
  EXPECT_EQ(verdict(-1.2, 0.1).verdict, Verdict::violated);
  EXPECT_EQ(verdict(-1.2, std::nan("")).verdict, Verdict::violated);
}

TEST(PathParity, AllowsEachPathTheStoreOfItsOwnSideOfAKink) {
  // By the answers the margin is 100.5, beyond the hinge; by the policies it is lost, and 0.1 of
  // the other side is 0.10009765625 in bf16.
  constexpr const char* kPair = R"(lossgate-case: 1
loss: dpo
reduction: sum
option.loss_type: hinge
option.beta: 0.1
option.label_smoothing: 0
option.margin: 0
shape: sequences 1
split: whole
layout: contiguous
upstream: 1

field chosen_log_prob bf16
  0

field rejected_log_prob bf16
  -2.07e34

field ref_chosen_log_prob bf16
  -100.5

field ref_rejected_log_prob bf16
  -2.07e34
)";
  const reference::Loss& loss = *reference::find_loss("dpo");
  const Case c = corpora::decode(kPair, "pair.case", reference::find_signature);
  const auto sound = [](std::string_view name) -> const impl::Implementation& {
    return *std::ranges::find_if(impl::catalog(false), [&](const impl::Implementation& one) {
      return one.loss == "dpo" && one.name == name;
    });
  };
  const Outcome outcome = beside(loss, c, sound("eager"), sound("eager_by_answer"));
  EXPECT_EQ(outcome.verdict, Verdict::held) << outcome.worst_ratio;
  EXPECT_EQ(beside(loss, c, sound("eager_by_answer"), sound("eager")).verdict, Verdict::held);
}

/// GRPO, of whose every entry 1 is expected, within the error that goes with the compute format.
reference::Loss ones(double error_in_f32, double error_in_bf16) {
  const auto values = [=](const reference::Problem& problem, const Arithmetic& arithmetic,
                          reference::Sink<reference::Tracked>& sink) {
    const double error = arithmetic.compute == Dtype::f32 ? error_in_f32 : error_in_bf16;
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      const std::int64_t entries = element_count(problem.outputs[o].extents);
      for (std::int64_t i = 0; i < entries; ++i) sink.entry(o, i, {1.0L, error, 1.0, 0.0});
    }
  };
  reference::Loss loss = grpo();
  loss.advice = {.values = values, .judges = [](const Arithmetic&) { return true; }};
  return loss;
}

/// Answers one number throughout.
impl::Implementation constant(Dtype compute, double number) {
  impl::Implementation fake;
  fake.name = std::string(name(compute));
  fake.unsupported = [](const Case&) { return std::nullopt; };
  fake.arithmetic = [compute](Dtype) { return plain_arithmetic(compute, ""); };
  fake.evaluate = [number](const LossSignature& signature, const Case& c) {
    LossResult result;
    for (const OutputInfo& info : outputs_of(signature, c)) {
      result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
      change_each(result.outputs.back().tensor, [number](double) { return number; });
    }
    return result;
  };
  return fake;
}

TEST(PathParity, AllowsTheErrorsOfBothPaths) {
  const reference::Loss loss = ones(1e-3, 4e-3);
  for (const double sign : {1.0, -1.0}) {
    const auto verdict = [&](double distance) {
      const auto single = constant(Dtype::f32, 1.0),
                 narrow = constant(Dtype::bf16, 1.0 + sign * distance);
      const Verdict one = beside(loss, grpo_case(2, 3), single, narrow).verdict;
      EXPECT_EQ(one, beside(loss, grpo_case(2, 3), narrow, single).verdict);
      return one;
    };
    EXPECT_EQ(verdict(2.0 * 0.0049), Verdict::held) << sign;
    EXPECT_EQ(verdict(2.0 * 0.0051), Verdict::violated) << sign;
  }
}

TEST(PathParity, IsSilentOnlyOfTheNanOfAGradientUnderAZeroUpstream) {
  const reference::Loss loss = ones(1e-3, 1e-3);
  const auto verdict = [&](double upstream, std::string_view which, double number) {
    Case c = grpo_case(2, 3);
    c.upstream = upstream;
    auto other = constant(Dtype::bf16, 1.0);
    other.evaluate = [=, sound = other.evaluate](const LossSignature& signature, const Case& x) {
      LossResult result = sound(signature, x);
      output(result, which).set(0, number);
      return result;
    };
    return beside(loss, c, constant(Dtype::f32, 1.0), other).verdict;
  };
  for (const char* which : {"loss", "gradient.log_prob"}) {
    for (const double upstream : {0.0, 1.0}) {
      const bool silent = upstream == 0.0 && std::string_view(which) != "loss";
      EXPECT_EQ(verdict(upstream, which, std::nan("")), silent ? Verdict::held : Verdict::violated)
          << which << " under " << upstream;
      EXPECT_EQ(verdict(upstream, which, 1.1), Verdict::violated) << which << " " << upstream;
    }
  }
}

TEST(PathParity, AllowsExactPathsTheirTwoStores) {
  const auto verdict = [](double roundoffs) {
    const double there = 1.0 + roundoffs * unit_roundoff(Dtype::f32);
    return beside(ones(0.0, 0.0), grpo_case(2, 3), constant(Dtype::f32, 1.0),
                  constant(Dtype::bf16, there))
        .verdict;
  };
  EXPECT_EQ(verdict(4.0), Verdict::held);
  EXPECT_EQ(verdict(6.0), Verdict::violated);
}

TEST(PathParity, AllowsIntegersNothing) {
  const char* name = "teacher_payload";
  const reference::Loss& loss = *reference::find_loss(name);
  const Case c = reference::SmallCases(loss.signature, 2).draw(Dtype::f32);
  const auto verdict = [&](double more) {
    auto other = answering(name, nullptr, [more](const Case&, LossResult& result) {
      Tensor& token = output(result, "token_id");
      token.set(0, token.at(0) + more);
    });
    other.name = "other";
    return beside(loss, c, answering(name, nullptr), other).verdict;
  };
  EXPECT_EQ(verdict(0.0), Verdict::held);
  EXPECT_EQ(verdict(1.0), Verdict::violated);
}

}  // namespace
}  // namespace lossgate::properties
