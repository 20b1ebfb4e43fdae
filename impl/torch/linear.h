// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

namespace lossgate::impl {

/// The output layer: logits = (hidden weight^T + bias) / temperature, in the compute format.
struct OutputLayer {
  at::Tensor weight;  ///< [vocab, hidden]
  at::Tensor bias;    ///< [vocab], or undefined
  double temperature = 1.0;

  at::Tensor logits(const at::Tensor& hidden) const;
};

/// Gradients by the inputs of an output layer. Weight and bias add up over chunks of rows in the
/// compute format; a 16-bit sum would stop growing.
struct LayerGradients {
  at::Tensor hidden, weight, bias;

  LayerGradients(const OutputLayer& layer, const at::Tensor& hidden);

  /// Takes in the gradient by logit of the rows that begin at `first`.
  void add(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& by_logit,
           std::int64_t first);
};

/// The rows of `x` at valid positions, in the compute format: [rows, ...]. No other row is read.
at::Tensor valid_rows(const at::Tensor& x, const at::Tensor& rows);

/// Positions that count, as indices of flattened [sequences, tokens].
at::Tensor row_indices(const at::Tensor& valid);

/// Zeros [sequences, tokens, ...] with `values` at `rows`.
at::Tensor at_rows(const at::Tensor& values, const at::Tensor& rows, at::IntArrayRef extents);

/// Calls f(first, length) for chunks of rows, so that logits of a chunk are all that exist at once.
template <class F>
void for_each_chunk(std::int64_t rows, F&& f) {
  constexpr std::int64_t kChunk = 1024;
  for (std::int64_t first = 0; first < rows; first += kChunk) {
    f(first, std::min(kChunk, rows - first));
  }
}

/// Refuses hidden states and weights that do not fit together.
void check_layer(const at::Tensor& hidden, const at::Tensor& weight, const char* hidden_argument,
                 const char* weight_argument);

/// Refuses a bias that does not fit the weight; it may be undefined.
void check_bias(const at::Tensor& bias, const at::Tensor& weight);

/// In the compute format; undefined where x is.
at::Tensor widened(const at::Tensor& x);

/// Log-probs [sequences, tokens] of the labels, 0 where not valid; differentiable with respect to
/// hidden, weight and bias, in whose formats gradients come. Logits are formed twice and never
/// kept.
at::Tensor linear_log_prob(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& label, const at::Tensor& valid,
                           double temperature);

}  // namespace lossgate::impl
