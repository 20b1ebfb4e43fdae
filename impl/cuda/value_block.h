// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/positions_block.h"
#include "impl/cuda/value_math.h"

namespace lossgate::impl {

/// The clipped value loss of a critic.
template <class Stored>
struct ValueArrays {
  TokenArrays batch;
  ValueOptions<float> options;
  Strided<const Stored> value, old_value, target;
  Strided<Stored> gradient;
};

/// One sequence: terms and gradient of all its positions.
template <class Block, class Stored>
LOSSGATE_BLOCK_PROGRAM void value_sequence(Block& block, const ValueArrays<Stored>& arrays,
                                           std::int64_t sequence) {
  BlockReduction<Block> reduction(block);
  const TokenArrays& batch = arrays.batch;
  const float weight = weight_of(batch.weighing, count_valid(block, reduction, batch, sequence));
  const float scale = upstream_of(batch) * weight;
  for_each_element(block, batch.tokens, [&](int, int, std::int64_t token) {
    const auto read = [&](const Strided<const Stored>& array) {
      return widened(*at(block, array, sequence, token));
    };
    ValueTerm<float> term{0.0f, 0.0f, 0.0f};
    if (is_valid(block, batch.validity, sequence, token)) {
      term = value_term(read(arrays.value), read(arrays.old_value), read(arrays.target),
                        arrays.options);
    }
    *at(block, batch.per_token, sequence, token) = term.value;
    *at(block, batch.weighted, sequence, token) = scaled(weight, term.value);
    store_if_there(scaled(scale * term.share, term.slope),
                   at(block, arrays.gradient, sequence, token));
  });
}

}  // namespace lossgate::impl
