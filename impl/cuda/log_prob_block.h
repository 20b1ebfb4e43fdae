// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/softmax_block.h"

namespace lossgate::impl {

/// Selected log-prob and entropy from logits. The loss weighs both, so that these weights are the
/// gradients that come from above; absent where there is none to form. `gradient` may be the memory
/// of `logits`.
template <class Stored>
struct LogProbArrays {
  TokenArrays batch;  ///< per_token is the log-prob
  std::int64_t vocab = 0;
  float temperature = 1.0f;
  Labels labels;
  Strided<const Stored> logits;
  Strided<const float> log_prob_weight, entropy_weight;
  Strided<float> entropy;
  Strided<Stored> gradient;
};

/// weight * x: a weight of 0 asks for nothing, not even of an impossible token.
LOSSGATE_HOST_DEVICE inline float asked(float weight, float x) {
  return weight == 0.0f ? 0.0f : weight * x;
}

/// One position. The row is read twice: for softmax and entropy, and for the gradient, which needs
/// both.
template <class Block, class Stored>
LOSSGATE_BLOCK_PROGRAM void log_prob_row(Block& block, const LogProbArrays<Stored>& arrays,
                                         std::int64_t position) {
  using std::exp;
  const std::int64_t sequence = position / arrays.batch.tokens,
                     token = position % arrays.batch.tokens;
  const auto write = [&](float log_prob, float entropy, float weighted) {
    write_term(block, arrays.batch, sequence, token, log_prob, weighted);
    block.each([&](int t) {
      if (t == 0) *at(block, arrays.entropy, sequence, token) = entropy;
    });
  };
  Stored* const gradient = at(block, arrays.gradient, sequence, token);
  if (!is_valid(block, arrays.batch.validity, sequence, token)) {
    write(0.0f, 0.0f, 0.0f);
    return clear_row(block, gradient, arrays.vocab);
  }

  BlockReduction<Block> reduction(block);
  const Stored* const row = at(block, arrays.logits, sequence, token);
  const std::int64_t label = label_at(block, arrays.labels, sequence, token);
  const float taken_logit = logit_of(row, arrays.vocab, label);
  const Softmax softmax = softmax_of<true>(block, reduction, row, arrays.vocab, arrays.temperature);
  const float taken = log_prob_of(softmax, taken_logit), entropy = softmax.entropy;
  const auto weight_in = [&](const Strided<const float>& weights) {
    return weights.data ? *at(block, weights, sequence, token) : 0.0f;
  };
  const float w = weight_in(arrays.log_prob_weight), e = weight_in(arrays.entropy_weight);
  write(taken, entropy, asked(w, taken) + asked(e, entropy));
  const float upstream = upstream_of(arrays.batch);
  const float by_log_prob = upstream * w, by_entropy = upstream * e;
  // Where nothing arrives nothing leaves, whatever the logits.
  if (by_log_prob == 0.0f && by_entropy == 0.0f) return clear_row(block, gradient, arrays.vocab);
  write_gradient(block, row, arrays.vocab, gradient, [&](std::int64_t v, float logit) {
    const float l = log_prob_of(softmax, logit), p = exp(l);
    const float selected = by_log_prob * ((v == label ? 1.0f : 0.0f) - p);
    const float spread = asked(by_entropy, weighed(l, p, l + entropy));
    return cooled(selected - spread, arrays.temperature);
  });
}

}  // namespace lossgate::impl
