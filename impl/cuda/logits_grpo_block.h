// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/grpo_block.h"
#include "impl/cuda/softmax_block.h"

namespace lossgate::impl {

/// GRPO from logits. `gradient` may be the memory of `logits`. At sequence level a position's
/// gradient needs the log-probs of its whole sequence, so the work goes in three kernels:
/// take_log_prob, GrpoSequence on what it gives, and write_logits_gradient.
template <class Stored>
struct LogitsGrpoArrays {
  /// log_prob and its gradient are memory between the kernels.
  GrpoArrays<float> grpo;
  std::int64_t vocab = 0;
  float temperature = 1.0f;
  Labels labels;
  Strided<const Stored> logits;
  Strided<Stored> gradient;
  Strided<float> log_prob, shift, log_sum;  ///< what the first kernel leaves
};

/// One position of either kernel.
template <class Block, class Stored>
class LogitsGrpoRow {
 public:
  LOSSGATE_BLOCK_PROGRAM LogitsGrpoRow(Block& block, const LogitsGrpoArrays<Stored>& arrays,
                                       std::int64_t position)
      : block_(block),
        arrays_(arrays),
        sequence_(position / arrays.grpo.batch.tokens),
        token_(position % arrays.grpo.batch.tokens),
        row_(at(block, arrays.logits, sequence_, token_)),
        gradient_(at(block, arrays.gradient, sequence_, token_)),
        label_(label_at(block, arrays.labels, sequence_, token_)) {}

  /// Everything at once, at token level: the row is read twice.
  LOSSGATE_BLOCK_PROGRAM void run() {
    const TokenArrays& batch = arrays_.grpo.batch;
    if (!counts()) {
      write_term(block_, batch, sequence_, token_, 0.0f, 0.0f);
      return clear_row(block_, gradient_, arrays_.vocab);
    }
    const Softmax softmax = softmax_of_row();
    const auto read = [&](const Strided<const float>& array) {
      return *at(block_, array, sequence_, token_);
    };
    const GrpoToken<float> token{taken_, read(arrays_.grpo.old_log_prob),
                                 read(arrays_.grpo.ref_log_prob), read(arrays_.grpo.advantage)};
    const auto importance =
        importance_weight(token.log_prob - token.old_log_prob, arrays_.grpo.options.log_ratio);
    const GrpoTerm<float> term = grpo_term(token, importance, arrays_.grpo.options);
    const float weight = weight_of(batch.weighing, batch.row_tokens[sequence_]);
    write_term(block_, batch, sequence_, token_, term.value, weight * term.value);
    write_slopes(softmax, grpo_gradient(term, importance, upstream_of(batch) * weight));
  }

  LOSSGATE_BLOCK_PROGRAM void take_log_prob() {
    if (!counts()) return;
    const Softmax softmax = softmax_of_row();
    block_.each([&](int t) {
      if (t != 0) return;
      *at(block_, arrays_.log_prob, sequence_, token_) = taken_;
      *at(block_, arrays_.shift, sequence_, token_) = softmax.shift;
      *at(block_, arrays_.log_sum, sequence_, token_) = softmax.log_sum;
    });
  }

  LOSSGATE_BLOCK_PROGRAM void write_logits_gradient() {
    if (!counts()) return clear_row(block_, gradient_, arrays_.vocab);
    const Softmax softmax{arrays_.temperature, *at(block_, arrays_.shift, sequence_, token_),
                          *at(block_, arrays_.log_sum, sequence_, token_), 0.0f};
    write_slopes(softmax, *at(block_, arrays_.grpo.gradient, sequence_, token_));
  }

 private:
  LOSSGATE_BLOCK_PROGRAM bool counts() const {
    return is_valid(block_, arrays_.grpo.batch.validity, sequence_, token_);
  }

  /// The taken logit is read before anything is written over it.
  LOSSGATE_BLOCK_PROGRAM Softmax softmax_of_row() {
    BlockReduction<Block> reduction(block_);
    const float logit = logit_of(row_, arrays_.vocab, label_);
    const Softmax softmax = softmax_of(block_, reduction, row_, arrays_.vocab, arrays_.temperature);
    taken_ = log_prob_of(softmax, logit);
    return softmax;
  }

  LOSSGATE_BLOCK_PROGRAM void write_slopes(const Softmax& softmax, float by_log_prob) {
    using std::exp;
    write_gradient(block_, row_, arrays_.vocab, gradient_, [&](std::int64_t v, float logit) {
      const float p = exp(log_prob_of(softmax, logit));
      return cooled(by_log_prob * ((v == label_ ? 1.0f : 0.0f) - p), arrays_.temperature);
    });
  }

  Block& block_;
  const LogitsGrpoArrays<Stored>& arrays_;
  std::int64_t sequence_, token_;
  const Stored* row_;
  Stored* gradient_;
  std::int64_t label_;
  float taken_ = 0.0f;
};

}  // namespace lossgate::impl
