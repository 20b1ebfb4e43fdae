// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "impl/cuda/host_fields.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// The output layer in f32 around kernels that turn logits into their gradient where they lie: what
/// a library of matrix products does in a trainer. Its fields are <prefix>hidden, <prefix>weight
/// and, where `biased`, <prefix>bias.
class HostLayer {
 public:
  HostLayer(const MicroBatch& batch, std::string prefix, bool biased);

  /// The logits of one position.
  void forward(std::size_t position, float* row) const;
  /// Takes in their gradient.
  void back(std::size_t position, const float* row);
  /// The gradients by all fields; zero where nothing came back.
  void add_gradients(LossResult& result) const;

 private:
  const Tensor& field(std::string_view name) const {
    return batch_.part.batch.at(prefix_ + std::string(name));
  }
  void add(LossResult& result, std::string_view name, const std::vector<float>& values) const;

  const MicroBatch& batch_;
  std::string prefix_;
  std::size_t positions_, vocab_, width_;
  HostField<float> hidden_, weight_;
  std::optional<HostField<float>> bias_;
  std::vector<float> by_hidden_, by_weight_;
  std::vector<float> by_bias_;  ///< [vocab, positions], added up at the end
};

}  // namespace lossgate::impl
