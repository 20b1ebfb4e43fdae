// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace lossgate::impl {
namespace {

at::Tensor gradient_of(double value, double old_value, double returns, const char* clip_form) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow("lossgate::value_clip", "");
  const auto position = [](double x) { return at::full({1, 1}, x, at::kDouble); };
  const at::Tensor leaf = position(value).requires_grad_();
  torch::jit::Stack stack{leaf,
                          position(old_value),
                          position(returns),
                          at::ones({1, 1}, at::kBool),
                          1,
                          1,
                          "sum",
                          10.0,
                          clip_form,
                          16};
  handle.callBoxed(stack);
  return torch::autograd::grad({stack[0].toTensor()}, {leaf})[0];
}

TEST(ValueClip, AsksEachFormByItsOwnComparisonWhetherItClips) {
  // One step above old_value + 10; value - old_value is rounded to 10.
  const double old_value = -8.812783071065192, edge = old_value + 10.0;
  const double above = std::nextafter(edge, 2.0), returns = 1.5;
  EXPECT_EQ(gradient_of(above, old_value, returns, "interval").item<double>(), 0.0);
  EXPECT_EQ(gradient_of(above, old_value, returns, "around_old").item<double>(), above - returns);
}

}  // namespace
}  // namespace lossgate::impl
