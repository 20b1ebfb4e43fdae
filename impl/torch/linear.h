// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace lossgate::impl {

/// Some rows of whatever is [rows, ...].
struct RowChunk {
  std::int64_t first, count;
  at::Tensor operator()(const at::Tensor& x) const { return x.narrow(0, first, count); }
};

/// The rows of logits that an output layer makes of hidden states at valid positions, and no
/// others: (hidden weight^T + bias) / temperature, in the compute format. Those of a chunk are all
/// that exist at once, and are formed again on the way back rather than kept. None of this records
/// a graph.
class LinearRows {
 public:
  using TermsOf = std::function<at::Tensor(const at::Tensor& logits, const RowChunk& of)>;
  using SlopeOf = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& upstream,
                                           const RowChunk& of)>;

  /// Of `hidden` [sequences, tokens, hidden], `weight` [vocab, hidden] and `bias` [vocab], which
  /// may be undefined, at the positions `rows` (see row_indices).
  LinearRows(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
             const at::Tensor& rows, double temperature);

  at::Tensor logits(const RowChunk& of) const;

  /// Terms [sequences, tokens], 0 elsewhere, of which `terms_of` gives a chunk's from its logits.
  at::Tensor terms(const TermsOf& terms_of) const;

  /// The gradients by hidden, weight and bias, in their formats, where `upstream` is the one by
  /// `terms`. `slope_of` gives a chunk's by logit, from its share [count, 1] of that. Weight and
  /// bias add up over chunks in the compute format; a 16-bit sum would stop growing. That of a
  /// weight that is not `trained` is undefined: it is as large as the weight.
  std::vector<at::Tensor> gradients(const at::Tensor& upstream, bool trained,
                                    const SlopeOf& slope_of) const;

 private:
  std::vector<at::Tensor> form_gradients(const at::Tensor& upstream, bool trained,
                                         const SlopeOf& slope_of) const;
  void for_each_chunk(const std::function<void(const RowChunk&)>& each) const;

  at::Tensor hidden_, weight_, bias_;  ///< as they are stored
  at::Tensor rows_;
  at::Tensor wide_hidden_, wide_weight_, wide_bias_;  ///< of the hidden states only the rows
  double temperature_;
};

/// Positions that count, as indices of flattened [sequences, tokens].
at::Tensor row_indices(const at::Tensor& valid);

/// The labels of rows: [rows, 1].
at::Tensor taken_at(const at::Tensor& label, const at::Tensor& rows);

/// Refuses hidden states and weights that do not fit together.
void check_layer(const at::Tensor& hidden, const at::Tensor& weight, const char* hidden_argument,
                 const char* weight_argument);

/// Refuses a bias that does not fit the weight; it may be undefined.
void check_bias(const at::Tensor& bias, const at::Tensor& weight);

/// Log-probs [sequences, tokens] of the labels, 0 where not valid; differentiable with respect to
/// hidden, weight and bias, in whose formats gradients come. Logits are formed twice and never
/// kept.
at::Tensor linear_log_prob(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& label, const at::Tensor& valid,
                           double temperature);

}  // namespace lossgate::impl
