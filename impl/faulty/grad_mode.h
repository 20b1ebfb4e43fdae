// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/other_data.h"

/// Steps that are right as long as every gradient is asked for, right behind its forward.
namespace lossgate::impl {

inline Tensor& output_of(LossResult& result, std::string_view name) {
  return std::ranges::find(result.outputs, name, &Output::name)->tensor;
}

inline void clear(Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.0);
}

/// A buffer for the loss that only a backward fills.
inline Step without_loss_in_evaluation(Step step) {
  return [step = std::move(step)](MicroBatch& batch) {
    LossResult result = step(batch);
    if (batch.part.grad_mode == GradMode::none) clear(output_of(result, "loss"));
    return result;
  };
}

/// A buffer that only a backward makes, and the forward reads.
inline Step unbound_in_evaluation(Step step) {
  return [step = std::move(step)](MicroBatch& batch) {
    if (batch.part.grad_mode == GradMode::none) {
      throw Refusal{"", -1, -1, "the weight's gradient was never made"};
    }
    return step(batch);
  };
}

/// The gradient of `input` is made together with those that nobody asks for in a mode.
inline Step without_gradient(Step step, std::string_view input, GradMode mode) {
  return [step = std::move(step), input, mode](MicroBatch& batch) {
    LossResult result = step(batch);
    if (batch.part.grad_mode == mode) {
      clear(output_of(result, "gradient." + std::string(input)));
    }
    return result;
  };
}

/// What the backward needs, or what it returned, lies where calls of these histories write theirs.
inline Step with_one_place_for_all(Step step, std::string_view input,
                                   std::vector<History> histories) {
  return [step = std::move(step), input, histories = std::move(histories)](MicroBatch& batch) {
    LossResult result = step(batch);
    if (std::ranges::find(histories, batch.part.history) == histories.end()) return result;
    LossResult kept = on_other_data(batch, step);
    const std::string gradient = "gradient." + std::string(input);
    output_of(result, gradient) = output_of(kept, gradient);
    return result;
  };
}

/// A backward that multiplies what the forward kept in place.
inline Step scaled_at_each_backward(Step step, std::string_view input) {
  return [step = std::move(step), input](MicroBatch& batch) {
    LossResult result = step(batch);
    if (batch.part.history != History::backward_twice) return result;
    Tensor& gradient = output_of(result, "gradient." + std::string(input));
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      gradient.set(i, gradient.at(i) * batch.part.upstream);
    }
    return result;
  };
}

}  // namespace lossgate::impl
