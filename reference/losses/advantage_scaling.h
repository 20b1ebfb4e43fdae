// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Advantages that carry the normalisation of a loss which is a sum (an operation: tensors in,
/// tensors out).
///
/// Formula: scaled_advantage[s,t] = advantage[s,t] w[s], w being the factor that the reduction
///   `normalisation` gives to the terms of sequence s, counted over the whole mini-batch.
/// Shapes: all [sequences, tokens]. Gradient: none. Masked positions and an empty batch give 0.
/// Error: a count over a micro-batch is a mean of means; without a floor an empty one divides by 0.
/// Source: NovaSky-AI/SkyRL#925 and #1296, `apply_loss_reduction_to_advantages_minibatch`.
struct AdvantageScaling {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    return {
        .id = "advantage_scaling",
        .title = "advantages that carry the normalisation of a summed loss",
        .formula = "advantage / N, advantage / (S n_s) or advantage / (S max_length)",
        .source = "NovaSky-AI/SkyRL#925, NovaSky-AI/SkyRL#1296",
        .options = {choice_option("normalisation",
                                  {std::string(name(Reduction::token_mean)),
                                   std::string(name(Reduction::sequence_mean)),
                                   std::string(name(Reduction::seq_mean_token_sum_norm))},
                                  "the reduction that the scaled advantages realise; "
                                  "token_mean: divided by all tokens, sequence_mean: by those of "
                                  "the sequence and by all sequences, seq_mean_token_sum_norm: by "
                                  "all sequences and by max_length"),
                    max_length_option()},
        .fields = {advantage_field(), mask_field()},
        .outputs = {{.name = "scaled_advantage",
                     .axes = {Axis::sequences, Axis::tokens},
                     .doc = "0 where masked"}},
        .mask = "mask",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto advantage = in.field("advantage");
    const auto write = out.writer("scaled_advantage");
    const auto reduction = parse_reduction(in.spec().choice("normalisation"));
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      const S weight = in.row_tokens(s) > 0 ? in.token_weight(reduction.value(), s) : S(0);
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        write(in.valid(s, t) ? store(Stage::per_token, S(advantage(s, t) * weight)) : S(0), s, t);
      }
    }
  }
};

}  // namespace lossgate::reference
