// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/faulty/tape_functions.h"
#include "impl/trainer.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// The output layer `weight`, `bias` on the states `hidden`, in the format of V: logits, and from
/// gradients by these the ones by its fields.
template <class V>
class EagerLayer {
 public:
  using Slopes = std::vector<std::vector<V>>;  ///< of each position; empty where it was not read

  /// Faulty where `narrow`: the weight's gradient is kept in the weight's own format, to which each
  /// sequence adds.
  EagerLayer(const MicroBatch& batch, bool narrow)
      : part_(batch.part),
        tokens_(batch.part.shape[Axis::tokens]),
        width_(batch.part.shape[Axis::hidden]),
        narrow_(narrow) {}

  V logit(std::int64_t at, std::int64_t v) const { return product(at, v, entry("bias", v)); }

  /// Without the bias.
  V plain_logit(std::int64_t at, std::int64_t v) const { return product(at, v, V(0)); }

  std::int64_t positions() const { return part_.shape[Axis::sequences] * tokens_; }
  std::int64_t vocab() const { return part_.shape[Axis::vocab]; }
  static Dtype wide() { return sizeof(V) == 8 ? Dtype::f64 : Dtype::f32; }

  /// Replaces the last output of a program on what logits give, the gradient by that, by the ones
  /// by the layer's fields. `slopes_of` makes the gradient by logits of it.
  template <class SlopesOf>
  LossResult taken_back(LossResult result, SlopesOf&& slopes_of) const {
    const Slopes by_logit = slopes_of(std::as_const(result).outputs.back().tensor);
    result.outputs.pop_back();
    result.outputs.push_back({"gradient.hidden", by_hidden(by_logit)});
    result.outputs.push_back({"gradient.weight", by_weight(by_logit)});
    result.outputs.push_back({"gradient.bias", by_bias(by_logit)});
    return result;
  }

 private:
  const Tensor& field(std::string_view name) const { return part_.batch.at(name); }
  V entry(std::string_view name, std::int64_t at) const {
    return static_cast<V>(field(name).at(at));
  }

  V product(std::int64_t at, std::int64_t v, V sum) const {
    for (std::int64_t h = 0; h < width_; ++h) {
      sum += entry("hidden", at * width_ + h) * entry("weight", v * width_ + h);
    }
    return sum;
  }

  Tensor by_hidden(const Slopes& by_logit) const {
    Tensor gradient = Tensor::zeros(wide(), field("hidden").extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const std::vector<V>& slopes = by_logit[static_cast<std::size_t>(i / width_)];
      V sum = 0;
      for (std::size_t v = 0; v < slopes.size(); ++v) {
        sum += slopes[v] * entry("weight", static_cast<std::int64_t>(v) * width_ + i % width_);
      }
      gradient.set(i, static_cast<double>(sum));
    }
    return gradient;
  }

  Tensor by_weight(const Slopes& by_logit) const {
    const Tensor& weight = field("weight");
    Tensor gradient = Tensor::zeros(wide(), weight.extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      V total = 0, sum = 0;
      for (std::size_t at = 0; at < by_logit.size(); ++at) {
        const auto position = static_cast<std::int64_t>(at);
        if (!by_logit[at].empty()) {
          sum += by_logit[at][static_cast<std::size_t>(i / width_)] *
                 entry("hidden", position * width_ + i % width_);
        }
        if (narrow_ && (position + 1) % tokens_ == 0) {
          total = static_cast<V>(
              round_to(weight.dtype, static_cast<double>(total) + static_cast<double>(sum)));
          sum = 0;
        }
      }
      gradient.set(i, static_cast<double>(total + sum));
    }
    return gradient;
  }

  Tensor by_bias(const Slopes& by_logit) const {
    Tensor gradient = Tensor::zeros(wide(), field("bias").extents);
    std::vector<V> slopes(by_logit.size());
    for (std::int64_t v = 0; v < gradient.size(); ++v) {
      for (std::size_t at = 0; at < slopes.size(); ++at) {
        slopes[at] = by_logit[at].empty() ? V(0) : by_logit[at][static_cast<std::size_t>(v)];
      }
      gradient.set(v, static_cast<double>(overflow_free_sum(slopes.data(), slopes.size())));
    }
    return gradient;
  }

  const Case& part_;
  std::int64_t tokens_, width_;
  bool narrow_;
};

}  // namespace lossgate::impl
