// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "impl/cuda/grpo_math.h"
#include "impl/cuda/positions_block.h"

namespace lossgate::impl {

/// PPO-clip / GRPO with its KL penalty, from log-probs. The gradient may be absent, as in all
/// kernels: then it is not written.
template <class Stored>
struct GrpoArrays {
  TokenArrays batch;
  GrpoOptions<float> options;
  Strided<const Stored> log_prob, old_log_prob, ref_log_prob, advantage;
  Strided<Stored> gradient;
};

/// One sequence: terms and gradient of all its positions.
template <class Block, class Stored>
class GrpoSequence {
 public:
  LOSSGATE_BLOCK_PROGRAM GrpoSequence(Block& block, const GrpoArrays<Stored>& arrays,
                                      std::int64_t sequence)
      : block_(block), arrays_(arrays), sequence_(sequence), reduction_(block) {}

  LOSSGATE_BLOCK_PROGRAM void run() {
    const std::int64_t count = count_valid(block_, reduction_, arrays_.batch, sequence_);
    weight_ = weight_of(arrays_.batch.weighing, count);
    scale_ = upstream_of(arrays_.batch) * weight_;
    if (arrays_.options.sequence_level && count > 0) {
      run_sequence_level(static_cast<float>(count));
    } else {
      run_token_level();
    }
  }

 private:
  LOSSGATE_BLOCK_PROGRAM bool valid(std::int64_t token) const {
    return is_valid(block_, arrays_.batch.validity, sequence_, token);
  }

  template <class T>
  LOSSGATE_BLOCK_PROGRAM float read(const Strided<const T>& array, std::int64_t token) const {
    return widened(*at(block_, array, sequence_, token));
  }

  LOSSGATE_BLOCK_PROGRAM float log_ratio(std::int64_t token) const {
    return read(arrays_.log_prob, token) - read(arrays_.old_log_prob, token);
  }

  LOSSGATE_BLOCK_PROGRAM GrpoTerm<float> term_at(std::int64_t token,
                                                 const ImportanceWeight<float>& weight) const {
    const GrpoToken<float> read_token{
        read(arrays_.log_prob, token), read(arrays_.old_log_prob, token),
        read(arrays_.ref_log_prob, token), read(arrays_.advantage, token)};
    return grpo_term(read_token, weight, arrays_.options);
  }

  /// What stands at one position afterwards; masked positions get exact zeros.
  LOSSGATE_BLOCK_PROGRAM void write(std::int64_t token, float value, float weighted,
                                    float gradient) const {
    *at(block_, arrays_.batch.per_token, sequence_, token) = value;
    *at(block_, arrays_.batch.weighted, sequence_, token) = weighted;
    store_if_there(gradient, at(block_, arrays_.gradient, sequence_, token));
  }

  LOSSGATE_BLOCK_PROGRAM void run_token_level() {
    for_each_element(block_, arrays_.batch.tokens, [&](int, int, std::int64_t token) {
      if (!valid(token)) return write(token, 0.0f, 0.0f, 0.0f);
      const auto importance = importance_weight(log_ratio(token), arrays_.options.log_ratio);
      const GrpoTerm<float> term = term_at(token, importance);
      write(token, term.value, weight_ * term.value, grpo_gradient(term, importance, scale_));
    });
  }

  LOSSGATE_BLOCK_PROGRAM void run_sequence_level(float count) {
    // Shares of the mean are added, so that it overflows only where the mean does.
    const float mean = over_valid([&](std::int64_t token) { return log_ratio(token) / count; });
    const auto importance = importance_weight(mean, arrays_.options.log_ratio);
    const float shared = shared_gradient(importance, count);
    for_each_element(block_, arrays_.batch.tokens, [&](int, int, std::int64_t token) {
      if (!valid(token)) return write(token, 0.0f, 0.0f, 0.0f);
      const GrpoTerm<float> term = term_at(token, importance);
      write(token, term.value, weight_ * term.value, shared + scaled(scale_, term.slope));
    });
  }

  /// What every token of the row gets through the shared weight. The terms are scaled before they
  /// are added, so that large advantages do not overflow, unless that would lose small ones.
  LOSSGATE_BLOCK_PROGRAM float shared_gradient(const ImportanceWeight<float>& importance,
                                               float count) {
    const auto slope_of = [&](std::int64_t token) {
      return term_at(token, importance).weight_slope;
    };
    const float later = over_valid([&](std::int64_t token) {
                          return scaled(scale_, term_at(token, importance).log_weight_slope);
                        }) /
                        count;
    const float through =
        over_valid([&](std::int64_t token) { return scaled(scale_, slope_of(token)); });
    if (std::fabs(scale_) < 1.0f && std::fabs(through) < std::numeric_limits<float>::min()) {
      return scaled(scale_, mean_times(over_valid(slope_of), importance.slope, count)) + later;
    }
    return mean_times(through, importance.slope, count) + later;
  }

  template <class Term>
  LOSSGATE_BLOCK_PROGRAM float over_valid(Term&& term) {
    return overflow_free_sum(block_, reduction_, arrays_.batch.tokens,
                             [&](std::int64_t token) { return valid(token) ? term(token) : 0.0f; });
  }

  Block& block_;
  const GrpoArrays<Stored>& arrays_;
  std::int64_t sequence_;
  BlockReduction<Block> reduction_;
  float weight_ = 0.0f, scale_ = 0.0f;
};

}  // namespace lossgate::impl
