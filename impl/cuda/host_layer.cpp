// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/host_layer.h"

#include <utility>

#include "impl/pairwise_sum.h"

namespace lossgate::impl {

HostLayer::HostLayer(const MicroBatch& batch, std::string prefix, bool biased)
    : batch_(batch),
      prefix_(std::move(prefix)),
      positions_(batch.positions.valid.size()),
      vocab_(static_cast<std::size_t>(batch.part.shape[Axis::vocab])),
      width_(static_cast<std::size_t>(batch.part.shape[Axis::hidden])),
      hidden_(field("hidden")),
      weight_(field("weight")),
      by_hidden_(positions_ * width_),
      by_weight_(vocab_ * width_) {
  if (!biased) return;
  bias_.emplace(field("bias"));
  by_bias_.resize(vocab_ * positions_);
}

void HostLayer::forward(std::size_t position, float* row) const {
  for (std::size_t v = 0; v < vocab_; ++v) {
    float sum = bias_ ? (*bias_)[v] : 0.0f;
    for (std::size_t h = 0; h < width_; ++h) {
      sum += hidden_[position * width_ + h] * weight_[v * width_ + h];
    }
    row[v] = sum;
  }
}

void HostLayer::back(std::size_t position, const float* row) {
  for (std::size_t v = 0; v < vocab_; ++v) {
    if (bias_) by_bias_[v * positions_ + position] = row[v];
    for (std::size_t h = 0; h < width_; ++h) {
      by_hidden_[position * width_ + h] += row[v] * weight_[v * width_ + h];
      by_weight_[v * width_ + h] += row[v] * hidden_[position * width_ + h];
    }
  }
}

void HostLayer::add_gradients(LossResult& result) const {
  add(result, "hidden", by_hidden_);
  add(result, "weight", by_weight_);
  if (!bias_) return;
  std::vector<float> by_bias(vocab_);
  for (std::size_t v = 0; v < vocab_; ++v) {
    by_bias[v] = overflow_free_sum(by_bias_.data() + v * positions_, positions_);
  }
  add(result, "bias", by_bias);
}

void HostLayer::add(LossResult& result, std::string_view name,
                    const std::vector<float>& values) const {
  Tensor gradient = Tensor::zeros(Dtype::f32, field(name).extents);
  for (std::size_t i = 0; i < values.size(); ++i) {
    gradient.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  }
  result.outputs.push_back({"gradient." + prefix_ + std::string(name), std::move(gradient)});
}

}  // namespace lossgate::impl
