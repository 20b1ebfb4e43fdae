// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/grpo.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "impl/torch/catalog.h"

namespace lossgate::impl {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor row(std::vector<double> values, at::ScalarType type = at::kDouble) {
  return at::tensor(values, at::kDouble).to(type).unsqueeze(0);
}

struct Result {
  at::Tensor loss, per_token, gradient;
};

struct Inputs {
  at::Tensor log_prob, old_log_prob, ref_log_prob, advantage, mask;

  Result run(const PolicyOptions& options, double upstream = 1.0,
             Reduction reduction = Reduction::sum) const {
    const at::Tensor leaf = log_prob.clone().requires_grad_();
    const at::Tensor valid = mask.to(at::kLong);
    auto [loss, per_token] =
        grpo(leaf, old_log_prob, ref_log_prob, advantage, mask.to(at::kBool), options,
             {.reduction = reduction,
              .total_tokens = valid.sum().item<std::int64_t>(),
              .total_sequences = (valid.sum(1) > 0).sum().item<std::int64_t>()});
    EXPECT_TRUE(loss.requires_grad());
    const at::Tensor seed = at::full({}, upstream, loss.options());
    return {loss, per_token, torch::autograd::grad({loss}, {leaf}, {seed})[0]};
  }
};

const PolicyOptions kNoKl{.kl_penalty = 0.0};
const PolicyOptions kUnbounded{
    .log_ratio_clamp = {}, .kl_penalty = 0.1, .kl = {.input_clamp = {}, .output_clamp = {}}};

TEST(Grpo, ClipsAsTheFormulaSays) {
  // Weights 2, 1/2, 2, 1/2: clipped where the advantage would push further out.
  const double two = std::log(2.0);
  const Inputs in{row({two, -two, two, -two}), row({0, 0, 0, 0}), row({0, 0, 0, 0}),
                  row({1, 1, -1, -1}), row({1, 1, 1, 1})};
  const Result result = in.run(kNoKl);
  EXPECT_TRUE(at::allclose(result.per_token, row({-1.2, -0.5, 2, 0.8}), 1e-15, 0));
  EXPECT_TRUE(at::allclose(result.gradient, row({0, -0.5, 2, 0}), 1e-15, 0));
}

TEST(Grpo, AddsK3WithItsClosedDerivative) {
  const Inputs in{row({-2}), row({-2}), row({-1}), row({0}), row({1})};
  const Result result = in.run({.kl_penalty = 0.5});
  EXPECT_DOUBLE_EQ(result.loss.item<double>(), 0.5 * (std::expm1(1.0) - 1.0));
  EXPECT_DOUBLE_EQ(result.gradient.item<double>(), -0.5 * std::expm1(1.0));
}

TEST(Grpo, SharesTheWeightOfASequence) {
  const Inputs in{row({0.3, 0.1, 9}), row({0.1, 0.1, 0}), row({0, 0, 0}), row({1, 2, 0}),
                  row({1, 1, 0})};
  PolicyOptions options = kNoKl;
  options.sequence_level = true;
  const Result result = in.run(options);
  const double w = std::exp(0.1);
  EXPECT_TRUE(at::allclose(result.per_token, row({-w, -2 * w, 0}), 1e-15, 0));
  EXPECT_TRUE(at::allclose(result.gradient, row({-1.5 * w, -1.5 * w, 0}), 1e-15, 0));
}

TEST(Grpo, IsBlindToWhatTheMaskHides) {
  Inputs in{row({-1, -2, -3}), row({-1.1, -2, -2.9}), row({-1, -1, -1}), row({1, 1, -1}),
            row({1, 0, 1})};
  const Result clean = in.run(kUnbounded);
  for (double hidden : {kNan, kInf, -kInf, 1e300}) {
    for (at::Tensor* field : {&in.log_prob, &in.old_log_prob, &in.ref_log_prob, &in.advantage}) {
      field->select(1, 1).fill_(hidden);
    }
    const Result poisoned = in.run(kUnbounded);
    EXPECT_TRUE(at::equal(poisoned.loss, clean.loss));
    EXPECT_TRUE(at::equal(poisoned.gradient, clean.gradient));
    EXPECT_EQ(poisoned.gradient.select(1, 1).item<double>(), 0.0);
  }
}

TEST(Grpo, StaysFiniteWhereAClipDecidesOverAnInfiniteWeight) {
  const Inputs in{row({0, 0}, at::kFloat), row({-200, -200}, at::kFloat), row({0, 0}, at::kFloat),
                  row({1, 0}, at::kFloat), row({1, 1})};
  const Result result = in.run(kUnbounded);
  EXPECT_TRUE(at::allclose(result.per_token, row({-1.2, 0}, at::kFloat)));
  EXPECT_TRUE(at::equal(result.gradient, row({0, 0}, at::kFloat)));
}

TEST(Grpo, WidensHalfPrecisionBeforeTheFirstSubtraction) {
  // exp(20) overflows f16; the loss is formed in f32, the gradient is rounded to f16 once.
  const Inputs in{row({0}, at::kHalf), row({-20}, at::kHalf), row({0}, at::kHalf),
                  row({-1e-4}, at::kHalf), row({1})};
  const Result result = in.run(kNoKl);
  EXPECT_EQ(result.loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(result.loss.item<double>() / std::exp(20.0), 1e-4, 1e-7);
  EXPECT_EQ(result.gradient.scalar_type(), at::kHalf);
}

TEST(Grpo, KeepsASmallAdvantageAgainstALargeWeight) {
  // The smallest subnormal: the upstream gradient alone would flush it to zero.
  const double tiny = std::ldexp(1.0, -149);
  const Inputs in{row({0}, at::kFloat), row({-20}, at::kFloat), row({0}, at::kFloat),
                  row({-tiny}, at::kFloat), row({1})};
  EXPECT_GT(in.run(kNoKl, 0.25).gradient.item<double>(), 0.0);
}

TEST(Grpo, ShowsNanAtAValidPosition) {
  for (int field = 0; field < 4; ++field) {
    Inputs in{row({-1, -2}), row({-1, -2}), row({-1, -2}), row({1, 1}), row({1, 1})};
    at::Tensor* const fields[] = {&in.log_prob, &in.old_log_prob, &in.ref_log_prob, &in.advantage};
    fields[field]->select(1, 1).fill_(kNan);
    EXPECT_TRUE(std::isnan(in.run({}).loss.item<double>())) << field;
    EXPECT_TRUE(std::isnan(in.run(kUnbounded).loss.item<double>())) << field;
  }
}

TEST(Grpo, ShowsANanWeightOfAnEstimateThatIsZero) {
  const Inputs in{row({0}), row({kNan}), row({0}), row({0}), row({1})};
  for (std::optional<double> clamp : {std::optional<double>(), std::optional(20.0)}) {
    PolicyOptions options = kUnbounded;
    options.log_ratio_clamp = clamp;
    options.kl.weighted = true;
    EXPECT_TRUE(std::isnan(in.run(options).loss.item<double>()));
  }
}

TEST(Grpo, LetsASmallWeightBringBackAnEstimateThatOverflows) {
  // exp(100) exp(-99): f32 does not hold the first.
  const Inputs in{row({-100}, at::kFloat), row({-1}, at::kFloat), row({0}, at::kFloat),
                  row({0}, at::kFloat), row({1})};
  PolicyOptions options = kUnbounded;
  options.kl.weighted = true;
  EXPECT_NEAR(in.run(options).loss.item<double>(), 0.1 * std::exp(1.0), 1e-6);
  EXPECT_NEAR(in.run(options).gradient.item<double>(), 0.0, 1e-6);  // -w x, exp(-99) 100
  PolicyOptions by_sequence = options;
  by_sequence.sequence_level = true;
  EXPECT_NEAR(in.run(by_sequence).loss.item<double>(), 0.1 * std::exp(1.0), 1e-6);
  EXPECT_NEAR(in.run(by_sequence).gradient.item<double>(), 0.0, 1e-6);
  // 1e40 exp(-1e20), which is 0 and no reason to clamp.
  const Inputs far{row({-1e20}, at::kFloat), row({0}, at::kFloat), row({0}, at::kFloat),
                   row({0}, at::kFloat), row({1})};
  options.kl.estimator = KlEstimator::k2;
  options.kl.output_clamp = 10.0;
  EXPECT_EQ(far.run(options).loss.item<double>(), 0.0);
}

TEST(Grpo, GivesZeroForAnEmptyMaskAndStaysAttached) {
  const Inputs in{row({kNan, -1}), row({0, kInf}), row({0, 0}), row({1, 1}), row({0, 0})};
  for (Reduction reduction : {Reduction::sum, Reduction::token_mean, Reduction::sequence_mean,
                              Reduction::seq_mean_token_sum_norm}) {
    const Result result = in.run({}, 1.0, reduction);
    EXPECT_EQ(result.loss.item<double>(), 0.0);
    EXPECT_TRUE(at::equal(result.gradient, row({0, 0})));
  }
}

TEST(Grpo, DividesByTheCountsOfTheWholeStep) {
  const at::Tensor zero = row({0, 0}), one = row({1, 1}), valid = row({1, 1}).to(at::kBool);
  const auto loss = [&](const ReductionPlan& plan) {
    return std::get<0>(grpo(zero, zero, zero, one, valid, kNoKl, plan)).item<double>();
  };
  ReductionPlan plan{.total_tokens = 8, .total_sequences = 4, .max_length = 5};
  plan.reduction = Reduction::token_mean;
  EXPECT_DOUBLE_EQ(loss(plan), -2.0 / 8);
  plan.reduction = Reduction::sequence_mean;
  EXPECT_DOUBLE_EQ(loss(plan), -1.0 / 4);
  plan.reduction = Reduction::seq_mean_token_sum_norm;
  EXPECT_DOUBLE_EQ(loss(plan), -2.0 / 20);
  plan = {.reduction = Reduction::token_mean, .total_tokens = 0};
  EXPECT_THROW(loss(plan), c10::Error);
}

TEST(Grpo, RefusesWhatDoesNotFitTogether) {
  const at::Tensor x = row({0, 0}), narrow = row({0});
  const ReductionPlan plan;
  EXPECT_THROW(grpo(x, narrow, x, x, x.to(at::kBool), {}, plan), c10::Error);
  EXPECT_THROW(grpo(x, x, x, x, narrow.to(at::kBool), {}, plan), c10::Error);
  EXPECT_THROW(grpo(x, x, x, x, row({1, 2}).to(at::kByte), {}, plan), c10::Error);
  EXPECT_THROW(grpo(x, x, x, x, x, {}, plan), c10::Error);
  EXPECT_THROW(grpo(x, x, {}, x, x.to(at::kBool), {}, plan), c10::Error);
  EXPECT_THROW(reduction_plan("mean", {1, 1}), c10::Error);
  EXPECT_THROW(reduction_plan("sum_over_items", {1, 1, 1}), c10::Error);
  EXPECT_THROW(reduction_plan("sequence_mean", {.total_tokens = 1, .num_items = 1}), c10::Error);
  EXPECT_THROW(parse_kl_estimator("k4"), c10::Error);
}

TEST(Grpo, IsAnOperatorWithDefaults) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow("lossgate::grpo", "");
  const at::Tensor x = row({-1, -2}, at::kHalf).requires_grad_();
  torch::jit::Stack stack{x, x, x, at::ones_like(x), x.to(at::kBool), 2, 1};
  const auto& arguments = handle.schema().arguments();
  for (std::size_t i = stack.size(); i < arguments.size(); ++i) {
    stack.push_back(*arguments[i].default_value());
  }
  handle.callBoxed(stack);
  EXPECT_EQ(stack[0].toTensor().item<double>(), -1.0);
  EXPECT_TRUE(stack[0].toTensor().requires_grad());
  EXPECT_EQ(stack[1].toTensor().sizes(), x.sizes());
}

}  // namespace
}  // namespace lossgate::impl
