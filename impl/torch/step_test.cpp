// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/step.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <thread>

#include "impl/torch/catalog.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

TEST(Tensors, KeepValuesInEveryLayout) {
  for (Dtype dtype : kAllDtypes) {
    for (const Extents& extents :
         {Extents{}, Extents{5}, Extents{2, 3}, Extents{2, 3, 4}, Extents{0, 3}, Extents{2, 0}}) {
      Tensor tensor = Tensor::zeros(dtype, extents);
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        tensor.set(i, dtype == Dtype::boolean ? i % 2 : i);
      }
      for (Layout layout : kAllLayouts) {
        EXPECT_EQ(from_torch(as_torch(tensor, layout), dtype), tensor) << name(layout);
      }
    }
  }
}

TEST(Tensors, LieAsTheLayoutSays) {
  Tensor tensor = Tensor::zeros(Dtype::f32, {2, 3});
  EXPECT_EQ(as_torch(tensor, Layout::contiguous).const_data_ptr(), tensor.bytes.data());
  EXPECT_EQ(as_torch(tensor, Layout::offset).storage_offset(), 1);
  EXPECT_GT(as_torch(tensor, Layout::padded_rows).stride(0), 3);
  EXPECT_EQ(as_torch(tensor, Layout::padded_rows).stride(1), 1);
  EXPECT_EQ(as_torch(tensor, Layout::transposed).stride(0), 1);
  EXPECT_EQ(as_torch(tensor, Layout::sliced).strides(), at::IntArrayRef({4, 1}));
  EXPECT_EQ(as_torch(tensor, Layout::sliced).storage_offset(), 1);
  Tensor one_axis = Tensor::zeros(Dtype::f32, {4});
  EXPECT_EQ(as_torch(one_axis, Layout::transposed).stride(0), 2);
  Tensor rows = Tensor::zeros(Dtype::f32, {2, 3, 5});
  EXPECT_EQ(as_torch(rows, Layout::sliced).strides(), at::IntArrayRef({20, 5, 1}));
  EXPECT_EQ(as_torch(rows, Layout::sliced).storage_offset(), 0);
}

/// x^2 + y, both differentiable, in micro-batches.
const LossSignature kSquare{
    .id = "square",
    .title = {},
    .formula = {},
    .source = {},
    .fields = {{.name = "x", .role = Role::differentiable, .axes = {Axis::sequences, Axis::tokens}},
               {.name = "y", .role = Role::differentiable, .axes = {Axis::sequences}}},
    .outputs = {{.name = "per_token", .axes = {Axis::sequences, Axis::tokens}}},
    .reductions = {Reduction::sum}};

StepOutputs square(const StepInputs& in) {
  const at::Tensor per_token = in["x"].square() + in["y"].unsqueeze(1);
  return {.loss = per_token.sum(), .values = {{"per_token", per_token}}};
}

Case square_case() {
  Case c;
  c.spec = standard_spec(kSquare);
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 1;
  c.upstream = 10.0;
  c.batch.fields = {{"x", Tensor::zeros(Dtype::f32, {2, 1})},
                    {"y", Tensor::zeros(Dtype::f32, {2})}};
  c.batch.at("x").set(0, 3.0);
  c.batch.at("x").set(1, 4.0);
  c.batch.at("y").set(1, 0.5);
  return c;
}

TEST(Step, RunsForwardAndBackwardWithTheUpstreamGradient) {
  Case c = square_case();
  const Implementation row = torch_implementation("square", {}, square, "");
  for (Layout layout : kAllLayouts) {
    c.layout = layout;
    const LossResult result = row.evaluate(kSquare, c);
    ASSERT_FALSE(result.refusal);
    EXPECT_TRUE(result.mutated.empty());
    EXPECT_EQ(result.find("loss")->at(0), 25.5);
    EXPECT_EQ(result.find("per_token")->at(1), 16.5);
    EXPECT_EQ(result.find("gradient.x")->at(0), 60.0);
    EXPECT_EQ(result.find("gradient.x")->at(1), 80.0);
    EXPECT_EQ(result.find("gradient.y")->at(0), 10.0);
  }
}

/// What the square's forwards saw: whether a graph is made, of which inputs, and the first x.
struct Seen {
  bool enabled, of_x, of_y;
  double first;
  bool operator==(const Seen&) const = default;
};
std::vector<Seen> seen;

StepOutputs watched_square(const StepInputs& in) {
  seen.push_back({at::GradMode::is_enabled(), in["x"].requires_grad(), in["y"].requires_grad(),
                  in["x"].detach().flatten()[0].item<double>()});
  return square(in);
}

TEST(Step, MakesTheGraphThatItsCallerAsksFor) {
  const Implementation row = torch_implementation("square", {}, watched_square, "");
  EXPECT_TRUE(row.autograd);
  const auto asked = [&](GradMode mode) {
    seen.clear();
    Case c = square_case();
    c.grad_mode = mode;
    const LossResult result = row.evaluate(kSquare, c);
    EXPECT_EQ(result.find("loss")->at(0), 25.5);
    return std::pair(result.find("gradient.x")->at(1), result.find("gradient.y")->at(1));
  };
  EXPECT_EQ(asked(GradMode::none), std::pair(0.0, 0.0));
  EXPECT_EQ(seen, (std::vector<Seen>{{false, false, false, 3.0}}));
  EXPECT_EQ(asked(GradMode::first), std::pair(80.0, 0.0));
  EXPECT_EQ(seen, (std::vector<Seen>{{true, true, false, 3.0}}));
  EXPECT_EQ(asked(GradMode::all), std::pair(80.0, 10.0));
}

LossResult in_history(Forward forward, History history) {
  Case c = square_case();
  c.history = history;
  seen.clear();
  return torch_implementation("square", {}, forward, "").evaluate(kSquare, c);
}

TEST(Step, CallsTheFunctionOnOtherDataAsTheHistorySays) {
  const Seen own{true, true, true, 3.0}, other{true, true, true, 4.0};
  const Seen evaluated{false, false, false, 4.0};
  const auto calls = [&](History history) {
    const LossResult result = in_history(watched_square, history);
    EXPECT_EQ(result.find("gradient.x")->at(0), 60.0);
    EXPECT_EQ(result.find("gradient.y")->at(1), 10.0);
    return seen;
  };
  EXPECT_EQ(calls(History::alone), (std::vector<Seen>{own}));
  EXPECT_EQ(calls(History::evaluation), (std::vector<Seen>{own, evaluated}));
  EXPECT_EQ(calls(History::two_forwards), (std::vector<Seen>{own, other, other}));
  EXPECT_EQ(calls(History::summed_losses), (std::vector<Seen>{other, own}));
  EXPECT_EQ(calls(History::backward_twice), (std::vector<Seen>{own}));
  EXPECT_EQ(calls(History::updated), (std::vector<Seen>{other, own}));
}

TEST(Step, ShowsWhatIsKeptOfATensorThatWasThenChangedInPlace) {
  static std::map<const void*, at::Tensor> kept;
  const Forward forward = [](const StepInputs& in) {
    const auto [entry, _] = kept.try_emplace(in["x"].data_ptr(), in["x"].detach().clone());
    return StepOutputs{.loss = (in["x"] * entry->second).sum() + in["y"].sum(),
                       .values = {{"per_token", in["x"]}}};
  };
  const auto slope = [&](History history) {
    kept.clear();
    return in_history(forward, history).find("gradient.x")->at(0);
  };
  EXPECT_EQ(slope(History::alone), 30.0);
  EXPECT_EQ(slope(History::updated), 40.0);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The sum of x, whose gradient is kept, and in one of three ways used up by a backward.
template <int way>
struct UsedUp : torch::autograd::Function<UsedUp<way>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->saved_data["kept"] = x.detach().clone();
    return x.square().sum() / 2;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    at::Tensor kept = context->saved_data["kept"].toTensor();
    if constexpr (way == 0) return {kept.mul_(gradients[0])};  // scaled in place
    if constexpr (way == 1) {                                  // in one buffer for all
      static at::Tensor buffer;
      if (!buffer.defined()) buffer = at::zeros_like(kept);
      return {at::mul_out(buffer, kept, gradients[0])};
    }
    TORCH_CHECK(context->saved_data.count("spent") == 0, "through the graph a second time");
    context->saved_data["spent"] = true;
    return {kept * gradients[0]};
  }
};

template <int way>
double slope_of_used_up(History history) {
  const Forward forward = [](const StepInputs& in) {
    return StepOutputs{.loss = UsedUp<way>::apply(in["x"]) + in["y"].sum(),
                       .values = {{"per_token", in["x"]}}};
  };
  return in_history(forward, history).find("gradient.x")->at(0);
}

TEST(Step, ShowsWhatASecondBackwardFindsUsedUp) {
  EXPECT_EQ(slope_of_used_up<0>(History::alone), 30.0);
  EXPECT_EQ(slope_of_used_up<0>(History::backward_twice), 300.0);
}

TEST(Step, ShowsOneBufferForTheGradientsOfTwoCalls) {
  EXPECT_EQ(slope_of_used_up<1>(History::alone), 30.0);
  EXPECT_EQ(slope_of_used_up<1>(History::summed_losses), 40.0);
}

TEST(Step, TakesAnExceptionOfASecondBackwardForASoundRefusal) {
  EXPECT_EQ(slope_of_used_up<2>(History::backward_twice), 30.0);
}

int most_threads = 0;

/// What MKL asks OpenMP for, and ATen does not, before it spreads an exp.
StepOutputs counted_square(const StepInputs& in) {
  const auto asked = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  most_threads = asked ? asked() : 0;
  return square(in);
}

TEST(Step, RunsOnOneThreadWhoeverCalls) {
  at::set_num_threads(1);
  std::thread([] {
    torch_implementation("square", {}, counted_square, "").evaluate(kSquare, square_case());
  }).join();
  if (most_threads == 0) GTEST_SKIP() << "torch is not built with OpenMP";
  EXPECT_EQ(most_threads, 1);
}

TEST(Catalog, RegistersOnOneThread) {
  std::vector<Implementation> rows;
  lossgate_register(&rows);
  EXPECT_EQ(at::get_num_threads(), 1);
  for (const Implementation& row : rows) {
    EXPECT_EQ(row.name, "torch");
    EXPECT_FALSE(row.fault);
    EXPECT_TRUE(row.evaluate && row.arithmetic && row.unsupported);
    EXPECT_TRUE(row.source.file.starts_with("impl/torch/") && row.source.line > 0);
  }
}

}  // namespace
}  // namespace lossgate::impl
