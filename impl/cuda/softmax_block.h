// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "impl/cuda/divergence_math.h"
#include "impl/cuda/positions_block.h"

/// Softmax of one row of logits, however long, read once.
namespace lossgate::impl {

/// log p = (x - shift) - log_sum, where x is a logit divided by the temperature. The entropy is
/// log_sum less the average of x - shift: neither is negative, so nothing cancels.
struct Softmax {
  float temperature, shift, log_sum, entropy;
};

LOSSGATE_HOST_DEVICE inline float cooled(float logit, float temperature) {
  return temperature == 1.0f ? logit : logit / temperature;
}

LOSSGATE_HOST_DEVICE inline float log_prob_of(const Softmax& softmax, float logit) {
  return (cooled(logit, softmax.temperature) - softmax.shift) - softmax.log_sum;
}

/// One thread's running maximum m, with its sums of exp(x - m) and of exp(x - m) (x - m). They are
/// moved along whenever the maximum grows: no term changes its sign, so nothing cancels.
template <bool kMoments>
struct OnlineSums {
  float largest;
  Lanes powers, moments;
};

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

template <bool kMoments>
LOSSGATE_HOST_DEVICE void move_along(OnlineSums<kMoments>& online, float largest) {
  using std::exp;
  if (largest == online.largest) return;
  if (online.largest != kMinusInfinity) {  // else nothing has come yet
    const float shift = online.largest - largest, scale = exp(shift);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if constexpr (kMoments) {
        online.moments.at[j] = scaled(scale, online.moments.at[j] + shift * online.powers.at[j]);
      }
      online.powers.at[j] *= scale;
    }
  }
  online.largest = largest;
}

/// A NaN, or infinity less infinity, goes into the sums and stays there.
template <bool kMoments>
LOSSGATE_HOST_DEVICE void take_in(OnlineSums<kMoments>& online, const Pack& pack, int count) {
  using std::exp;
  float largest = online.largest;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    if (j < count && largest < pack.at[j]) largest = pack.at[j];
  }
  move_along(online, largest);
  // While all that came is impossible there is no maximum to subtract.
  const float shift = largest == kMinusInfinity ? 0.0f : largest;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    if (j >= count) continue;
    const float x = pack.at[j] - shift, power = exp(x);
    online.powers.at[j] += power;
    if (kMoments && x != kMinusInfinity) online.moments.at[j] += power * x;
  }
}

LOSSGATE_HOST_DEVICE inline void cool(Pack& pack, float temperature) {
  if (temperature == 1.0f) return;
#pragma unroll
  for (int j = 0; j < kPack; ++j) pack.at[j] /= temperature;
}

/// Reads the row once; the entropy is 0 where it is not asked for.
template <bool kEntropy = false, class Block, class Stored>
LOSSGATE_BLOCK_PROGRAM Softmax softmax_of(Block& block, BlockReduction<Block>& reduction,
                                          const Stored* row, std::int64_t vocab,
                                          float temperature) {
  using std::log;
  auto online = block.template per_thread<OnlineSums<kEntropy>>();
  block.each([&](int t) { online[t] = {kMinusInfinity, Lanes{}, Lanes{}}; });
  for_each_pack(block, row, vocab, [&](int t, std::int64_t, int count, Pack pack) {
    cool(pack, temperature);
    take_in(online[t], pack, count);
  });
  auto values = block.template per_thread<float>();
  block.each([&](int t) { values[t] = online[t].largest; });
  const float largest = reduction.maximum(values);
  block.each([&](int t) {
    move_along(online[t], largest);
    values[t] = BlockReduction<Block>::in_halves(online[t].powers);
  });
  const float sum = reduction.sum(values);
  Softmax softmax{temperature, largest, log(sum), 0.0f};
  if constexpr (kEntropy) {
    block.each([&](int t) { values[t] = BlockReduction<Block>::in_halves(online[t].moments); });
    softmax.entropy = softmax.log_sum - reduction.sum(values) / sum;
  }
  return softmax;
}

/// The logit of a token, NaN where the vocabulary has none: nothing is read outside of the row.
template <class Stored>
LOSSGATE_HOST_DEVICE float logit_of(const Stored* row, std::int64_t vocab, std::int64_t token) {
  return token >= 0 && token < vocab ? widened(row[token])
                                     : std::numeric_limits<float>::quiet_NaN();
}

/// Zeros over a row that does not count, if it is there; its numbers are not read.
template <class Block, class Stored>
LOSSGATE_BLOCK_PROGRAM void clear_row(Block& block, Stored* row, std::int64_t vocab) {
  if (!row) return;
  const bool aligned = is_aligned(row);
  const std::int64_t step = static_cast<std::int64_t>(block.threads()) * kPack;
  for (std::int64_t base = 0; base < vocab; base += step) {
    block.each([&](int t) {
      const std::int64_t first = base + static_cast<std::int64_t>(t) * kPack;
      if (first < vocab) store_pack(Pack{}, row + first, block.tail(first, vocab), aligned);
    });
  }
}

/// Writes slope(i, logit) for every logit of a row into the row `gradient`, which may be the same
/// memory: a thread writes only where it alone has read. It may also be absent.
template <class Block, class Stored, class Slope>
LOSSGATE_BLOCK_PROGRAM void write_gradient(Block& block, const Stored* row, std::int64_t vocab,
                                           Stored* gradient, Slope&& slope) {
  if (!gradient) return;
  const bool aligned = is_aligned(gradient);
  for_each_pack(block, row, vocab, [&](int, std::int64_t first, int count, Pack pack) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (j < count) pack.at[j] = slope(first + j, pack.at[j]);
    }
    store_pack(pack, gradient + first, count, aligned);
  });
}

}  // namespace lossgate::impl
