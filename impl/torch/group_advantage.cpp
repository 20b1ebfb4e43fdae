// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <string_view>

#include "impl/torch/catalog.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

struct GroupOptions {
  std::string_view baseline = "mean", scale = "std", singleton = "zero";
  double epsilon = 1e-6;
};

void check(const at::Tensor& reward, const at::Tensor& group, const GroupOptions& options) {
  const auto [baseline, scale, singleton, epsilon] = options;
  TORCH_CHECK(reward.dim() == 1, "reward must be [sequences], got ", reward.sizes());
  expect_like(reward, group, "group");
  TORCH_CHECK(baseline == "mean" || baseline == "leave_one_out",
              "baseline must be mean or leave_one_out, got '", baseline, "'");
  TORCH_CHECK(scale == "std" || scale == "population_std" || scale == "unscaled",
              "scale must be std, population_std or unscaled, got '", scale, "'");
  TORCH_CHECK(singleton == "zero" || singleton == "reward",
              "singleton must be zero or reward, got '", singleton, "'");
  TORCH_CHECK(epsilon >= 0.0, "epsilon must not be negative, got ", epsilon);
}

/// Advantages relative to the sequences of the same group, wherever these stand. What belongs
/// together is a matrix: batches have few sequences.
at::Tensor group_advantage(const at::Tensor& reward, const at::Tensor& group,
                           const GroupOptions& options) {
  check(reward, group, options);
  const at::NoGradGuard plain;
  const at::Tensor x = reward.to(compute_type(reward.scalar_type()));
  const at::Tensor together = group.unsqueeze(1) == group.unsqueeze(0);
  const at::Tensor count = together.sum(-1), alone = count == 1;
  const auto sum_over = [&](const at::Tensor& members, const at::Tensor& of_pair) {
    return at::where(members, of_pair, 0.0).sum(-1);
  };
  const at::Tensor rows = x.unsqueeze(0), mean = sum_over(together, rows) / count;
  at::Tensor distance = x - mean;
  if (options.baseline == "leave_one_out") {
    const at::Tensor others = together.clone().fill_diagonal_(false);
    distance = x - sum_over(others, rows) / (count - 1).clamp_min(1);
  }
  at::Tensor single = at::zeros_like(x);
  if (options.singleton == "reward") {
    single = options.scale == "unscaled" ? x : x / (1.0 + options.epsilon);
  }
  if (options.scale == "unscaled") return at::where(alone, single, distance);
  const at::Tensor squares = sum_over(together, (rows - mean.unsqueeze(1)).square());
  const at::Tensor divisor = options.scale == "std" ? (count - 1).clamp_min(1) : count;
  return at::where(alone, single, distance / ((squares / divisor).sqrt() + options.epsilon));
}

at::Tensor group_advantage_operator(const at::Tensor& reward, const at::Tensor& group,
                                    c10::string_view baseline, c10::string_view scale,
                                    double epsilon, c10::string_view singleton) {
  return group_advantage(
      reward, group,
      {.baseline = baseline, .scale = scale, .singleton = singleton, .epsilon = epsilon});
}

StepOutputs group_advantage_step(const StepInputs& in) {
  const std::string baseline = in.spec().choice("baseline"), scale = in.spec().choice("scale"),
                    singleton = in.spec().choice("singleton");
  return {.loss = {},
          .values = {{"advantage", group_advantage(in["reward"], in["group"],
                                                   {.baseline = baseline,
                                                    .scale = scale,
                                                    .singleton = singleton,
                                                    .epsilon = in.spec().number("epsilon")})}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation group_advantage_implementation() {
  return torch_implementation("group_advantage", {"impl/torch/group_advantage.cpp", kLine},
                              group_advantage_step, "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "group_advantage(Tensor reward, Tensor group, *, str baseline='mean', str scale='std', "
      "float epsilon=1e-6, str singleton='zero') -> Tensor");
  library.impl("group_advantage", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::group_advantage_operator));
}
