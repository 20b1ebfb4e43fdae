// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "impl/cuda/block.h"

/// Which positions count, and what their terms weigh, as kernels are told.
namespace lossgate::impl {

/// Labels in 32 or 64 bits; -100 masks its position.
struct Labels {
  Strided<const std::int32_t> narrow;
  Strided<const std::int64_t> wide;
};

/// The marker that masks a position.
inline constexpr std::int64_t kMaskedLabel = -100;

template <class Block>
LOSSGATE_BLOCK_PROGRAM std::int64_t label_at(const Block& block, const Labels& labels,
                                             std::int64_t sequence, std::int64_t token) {
  return labels.wide.data ? *at(block, labels.wide, sequence, token)
                          : std::int64_t{*at(block, labels.narrow, sequence, token)};
}

/// A mask, or labels where the loss has no mask.
struct Validity {
  Strided<const std::uint8_t> mask;
  Labels labels;
};

template <class Block>
LOSSGATE_BLOCK_PROGRAM bool is_valid(const Block& block, const Validity& validity,
                                     std::int64_t sequence, std::int64_t token) {
  return validity.mask.data ? *at(block, validity.mask, sequence, token) != 0
                            : label_at(block, validity.labels, sequence, token) != kMaskedLabel;
}

/// The factor of a sequence's terms in the loss. Where it depends on the sequence's own count, it
/// is taken from `sequences`; counts of the whole step come from the trainer.
struct Weighing {
  float constant = 1.0f;
  std::int64_t sequences = 0;
  bool by_sequence = false;
};

LOSSGATE_HOST_DEVICE inline float weight_of(const Weighing& weighing, std::int64_t row_tokens) {
  if (row_tokens == 0) return 0.0f;
  if (!weighing.by_sequence) return weighing.constant;
  return 1.0f / static_cast<float>(weighing.sequences * row_tokens);
}

/// What every kernel is told of its batch, and its outputs of one number a position.
struct TokenArrays {
  std::int64_t sequences = 0, tokens = 0;
  Validity validity;
  Weighing weighing;
  /// The gradient of what is minimised by this loss, or where it lies if only the device knows it.
  float upstream = 1.0f;
  const float* upstream_at = nullptr;
  std::int64_t* row_tokens = nullptr;  ///< [sequences], where a block takes one position
  Strided<float> per_token;            ///< the term itself
  Strided<float> weighted;             ///< as it counts in the loss
};

LOSSGATE_HOST_DEVICE inline float upstream_of(const TokenArrays& batch) {
  return batch.upstream_at ? *batch.upstream_at : batch.upstream;
}

/// One sequence of an array.
template <class T>
Strided<T> sequence_of(const Strided<T>& array, std::int64_t sequence) {
  if (!array.data) return array;
  return {array.data + sequence * array.sequence_stride, array.sequence_stride, array.token_stride};
}

/// One sequence as a batch of its own, where the logits of all would not fit: its terms are summed
/// with the others' by a launch of the whole batch.
inline TokenArrays chunk_of(const TokenArrays& batch, std::int64_t sequence) {
  TokenArrays chunk = batch;
  chunk.sequences = 1;
  chunk.validity.mask = sequence_of(batch.validity.mask, sequence);
  chunk.validity.labels.narrow = sequence_of(batch.validity.labels.narrow, sequence);
  chunk.validity.labels.wide = sequence_of(batch.validity.labels.wide, sequence);
  chunk.row_tokens = batch.row_tokens + sequence;
  chunk.per_token = sequence_of(batch.per_token, sequence);
  chunk.weighted = sequence_of(batch.weighted, sequence);
  return chunk;
}

/// The valid positions of one sequence.
template <class Block>
LOSSGATE_BLOCK_PROGRAM std::int64_t count_valid(Block& block, BlockReduction<Block>& reduction,
                                                const TokenArrays& batch, std::int64_t sequence) {
  auto counts = block.template per_thread<std::int64_t>();
  block.each([&](int t) { counts[t] = 0; });
  for_each_element(block, batch.tokens, [&](int t, int, std::int64_t token) {
    counts[t] += is_valid(block, batch.validity, sequence, token);
  });
  return reduction.sum(counts);
}

/// Where blocks take single positions, others count before, one for each sequence.
template <class Block>
LOSSGATE_BLOCK_PROGRAM void count_sequence(Block& block, const TokenArrays& batch,
                                           std::int64_t sequence) {
  BlockReduction<Block> reduction(block);
  const std::int64_t count = count_valid(block, reduction, batch, sequence);
  block.each([&](int t) {
    if (t == 0) batch.row_tokens[sequence] = count;
  });
}

/// What one block of a row of logits writes for its position.
template <class Block>
LOSSGATE_BLOCK_PROGRAM void write_term(Block& block, const TokenArrays& batch,
                                       std::int64_t sequence, std::int64_t token, float value,
                                       float weighted) {
  block.each([&](int t) {
    if (t != 0) return;
    *at(block, batch.per_token, sequence, token) = value;
    *at(block, batch.weighted, sequence, token) = weighted;
  });
}

/// The loss: the sum of all weighted terms. One block does it, so its order is always the same.
template <class Block>
LOSSGATE_BLOCK_PROGRAM void sum_terms(Block& block, const TokenArrays& batch, float* loss) {
  BlockReduction<Block> reduction(block);
  const float sum =
      overflow_free_sum(block, reduction, batch.sequences * batch.tokens, [&](std::int64_t i) {
        return *at(block, batch.weighted, i / batch.tokens, i % batch.tokens);
      });
  block.each([&](int t) {
    if (t == 0) *loss = sum;
  });
}

}  // namespace lossgate::impl
