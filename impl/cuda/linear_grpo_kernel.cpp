// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "impl/cuda/grpo_options.h"
#include "impl/cuda/host_arrays.h"
#include "impl/cuda/kernel_forms.h"
#include "impl/cuda/logits_grpo_block.h"
#include "impl/pairwise_sum.h"

namespace lossgate::impl {
namespace {

/// The output layer in f32 around the kernels, which turn its logits into their gradient where they
/// lie.
class OutputLayer {
 public:
  explicit OutputLayer(const MicroBatch& batch)
      : batch_(batch),
        hidden_(batch.part.batch.at("hidden")),
        weight_(batch.part.batch.at("weight")),
        bias_(batch.part.batch.at("bias")),
        positions_(batch.positions.valid.size()),
        vocab_(static_cast<std::size_t>(batch.part.shape[Axis::vocab])),
        width_(static_cast<std::size_t>(batch.part.shape[Axis::hidden])) {}

  /// Rows of masked positions are left as they are.
  void forward(const Strided<float>& logits) const {
    for_each_valid(
        [&](std::size_t at, float* row) {
          for (std::size_t v = 0; v < vocab_; ++v) {
            float sum = bias_[v];
            for (std::size_t h = 0; h < width_; ++h) {
              sum += hidden_[at * width_ + h] * weight_[v * width_ + h];
            }
            row[v] = sum;
          }
        },
        logits);
  }

  void backward(const Strided<float>& slopes, LossResult& result) const {
    std::vector<float> by_hidden(positions_ * width_), by_weight(vocab_ * width_);
    std::vector<std::vector<float>> by_bias(vocab_, std::vector<float>(positions_));
    for_each_valid(
        [&](std::size_t at, const float* row) {
          for (std::size_t v = 0; v < vocab_; ++v) {
            by_bias[v][at] = row[v];
            for (std::size_t h = 0; h < width_; ++h) {
              by_hidden[at * width_ + h] += row[v] * weight_[v * width_ + h];
              by_weight[v * width_ + h] += row[v] * hidden_[at * width_ + h];
            }
          }
        },
        slopes);
    std::vector<float> bias(vocab_);
    for (std::size_t v = 0; v < vocab_; ++v) {
      bias[v] = overflow_free_sum(by_bias[v].data(), positions_);
    }
    add(result, "hidden", by_hidden);
    add(result, "weight", by_weight);
    add(result, "bias", bias);
  }

 private:
  template <class F>
  void for_each_valid(F&& f, const Strided<float>& rows) const {
    const std::int64_t tokens = batch_.part.shape[Axis::tokens];
    for (std::size_t i = 0; i < positions_; ++i) {
      const auto position = static_cast<std::int64_t>(i);
      if (batch_.positions.valid[i] == 0) continue;
      f(i, rows.data + position / tokens * rows.sequence_stride +
               position % tokens * rows.token_stride);
    }
  }

  void add(LossResult& result, const std::string& field, const std::vector<float>& values) const {
    Tensor gradient = Tensor::zeros(Dtype::f32, batch_.part.batch.at(field).extents);
    for (std::size_t i = 0; i < values.size(); ++i) {
      gradient.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    }
    result.outputs.push_back({"gradient." + field, std::move(gradient)});
  }

  const MicroBatch& batch_;
  HostField<float> hidden_, weight_, bias_;
  std::size_t positions_, vocab_, width_;
};

template <class Form>
LossResult linear_grpo_step(MicroBatch& micro_batch) {
  HostArrays host(micro_batch, Form::memory());
  LogitsGrpoArrays<float> arrays;
  TokenArrays& batch = arrays.grpo.batch;
  batch = host.tokens();
  arrays.grpo.options = read_grpo_options<float>(host.spec());
  arrays.vocab = host.extent(Axis::vocab);
  arrays.temperature = static_cast<float>(host.spec().number("temperature"));
  arrays.labels = batch.validity.labels;
  arrays.grpo.old_log_prob = host.widened_field("old_log_prob");
  arrays.grpo.ref_log_prob = host.widened_field("ref_log_prob");
  arrays.grpo.advantage = host.widened_field("advantage");
  const Extents positions = {batch.sequences, batch.tokens};
  const auto memory = [&](Extents extents) {
    return host.output<float>("", Dtype::f32, std::move(extents));
  };
  batch.per_token = host.output<float>("per_token", Dtype::f32, positions);
  arrays.log_prob = memory(positions);
  arrays.shift = memory(positions);
  arrays.log_sum = memory(positions);
  arrays.grpo.log_prob = {arrays.log_prob.data, arrays.log_prob.sequence_stride,
                          arrays.log_prob.token_stride};
  arrays.grpo.gradient = memory(positions);
  arrays.gradient = memory({batch.sequences, batch.tokens, arrays.vocab});
  arrays.logits = {arrays.gradient.data, arrays.gradient.sequence_stride,
                   arrays.gradient.token_stride};

  const OutputLayer layer(micro_batch);
  layer.forward(arrays.gradient);
  LossResult result = host.result(Form::loss(arrays));
  layer.backward(arrays.gradient, result);
  return result;
}

}  // namespace

std::vector<Implementation> linear_grpo_kernels() {
  return kernel_implementations(
      {.loss = "linear_grpo",
       .source = {"impl/cuda/logits_grpo_block.h", 1},
       .form = "expm1(x) - x, closed with (x - max) - log S",
       .sums = SumOrder::online},
      [](auto form, MicroBatch& batch) { return linear_grpo_step<decltype(form)>(batch); });
}

}  // namespace lossgate::impl
