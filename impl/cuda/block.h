// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "impl/cuda/host_device.h"
#include "impl/cuda/storage.h"

/// What a block program may ask of the threads that run it. A program is a function of a Block and
/// arguments; every thread of a kernel runs it (DeviceBlock), one thread runs it alone (LoopBlock),
/// or a host thread steps through all threads of a block (SteppedBlock). It is written as a
/// sequence of steps:
///
///   block.each([&](int thread) { ... });   what every thread does, in any order
///   block.barrier();                       what shared memory was written before is seen after
///
/// Between steps only what is the same for all threads is computed. A thread keeps numbers from one
/// step to the next in a PerThread; numbers cross threads through shared memory or an exchange, and
/// nothing else. So a program cannot reach a barrier from a branch that threads take differently,
/// and whoever steps through it sees every number that crosses without a barrier.
///
/// A Block has
///   Index                        what offsets into arrays are computed in
///   PerThread<T>, Shared<T>      values[thread]; array.get(thread, i), array.set(thread, i, x)
///   threads(), lanes()           of the block; of a warp, both powers of two
///   each(f), barrier()
///   shared<T>(n)                 an array for the rest of the program
///   exchanged(values, mask)      the values of threads whose number differs in these bits
///   agreed(values)               a value that is the same in all threads
///   tail(first, n)               how many of the kPack elements from `first` on exist
namespace lossgate::impl {

/// What all blocks share.
struct BlockRules {
  using Index = std::int64_t;

  LOSSGATE_HOST_DEVICE static int tail(std::int64_t first, std::int64_t n) {
    return n - first < kPack ? static_cast<int>(n - first) : kPack;
  }
};

inline constexpr int kWarpThreads = 32;
inline constexpr int kLargestBlock = 256;

/// Sums over a row have this many lanes, kPack in each thread of a full block.
inline constexpr int kSumLanes = kLargestBlock * kPack;

/// Threads for rows of n elements: no more than have something to do. A block that is not full has
/// one step to make, so the order of sums is that of a full one with zeros in it.
constexpr int block_threads(std::int64_t n) {
  int threads = kWarpThreads;
  while (threads < kLargestBlock && static_cast<std::int64_t>(threads) * kPack < n) threads *= 2;
  return threads;
}

/// An array of [sequences, tokens], or of [sequences, tokens, n] with the last axis dense.
template <class T>
struct Strided {
  T* data = nullptr;
  std::int64_t sequence_stride = 0, token_stride = 0;  ///< in elements
};

/// Where the element or row of one position lies.
template <class Block, class T>
LOSSGATE_BLOCK_PROGRAM T* at(const Block&, const Strided<T>& array, std::int64_t sequence,
                             std::int64_t token) {
  using Index = typename Block::Index;
  const Index offset = static_cast<Index>(sequence) * static_cast<Index>(array.sequence_stride) +
                       static_cast<Index>(token) * static_cast<Index>(array.token_stride);
  return array.data + offset;
}

/// kPack running sums of one thread.
struct Lanes {
  float at[kPack];
};

/// Without an index that is known only as the program runs, which would put the sums into memory.
LOSSGATE_HOST_DEVICE inline void add_to(Lanes& sums, int lane, float x) {
#pragma unroll
  for (int j = 0; j < kPack; ++j) sums.at[j] = j == lane ? sums.at[j] + x : sums.at[j];
}

/// Reductions over a block, in one order: a thread's lanes in halves, the threads of a warp in
/// halves, the warps in halves.
template <class Block>
class BlockReduction {
 public:
  template <class T>
  using PerThread = typename Block::template PerThread<T>;

  LOSSGATE_BLOCK_PROGRAM explicit BlockReduction(Block& block)
      : block_(block),
        floats_(block.template shared<float>(kWarpThreads)),
        integers_(block.template shared<std::int64_t>(kWarpThreads)) {}

  LOSSGATE_BLOCK_PROGRAM float sum(PerThread<float>& terms) {
    return reduced(terms, floats_, 0.0f, [](float a, float b) { return a + b; });
  }

  LOSSGATE_BLOCK_PROGRAM float sum(PerThread<Lanes>& terms) {
    PerThread<float> sums = block_.template per_thread<float>();
    block_.each([&](int t) { sums[t] = in_halves(terms[t]); });
    return sum(sums);
  }

  LOSSGATE_BLOCK_PROGRAM std::int64_t sum(PerThread<std::int64_t>& terms) {
    return reduced(terms, integers_, std::int64_t{0},
                   [](std::int64_t a, std::int64_t b) { return a + b; });
  }

  /// Of terms that are not NaN.
  LOSSGATE_BLOCK_PROGRAM float maximum(PerThread<float>& terms) {
    return reduced(terms, floats_, -std::numeric_limits<float>::infinity(),
                   [](float a, float b) { return a < b ? b : a; });
  }

  LOSSGATE_HOST_DEVICE static float in_halves(const Lanes& lanes) {
    Lanes sums = lanes;
#pragma unroll
    for (int half = kPack / 2; half > 0; half /= 2) {
#pragma unroll
      for (int j = 0; j < half; ++j) sums.at[j] += sums.at[j + half];
    }
    return sums.at[0];
  }

 private:
  template <class T, class Array, class Combine>
  LOSSGATE_BLOCK_PROGRAM T reduced(PerThread<T>& values, Array& shared, T nothing,
                                   Combine combine) {
    const int lanes = block_.lanes(), warps = block_.threads() / lanes;
    within_warps(values, lanes, combine);
    if (warps > 1) {
      block_.each([&](int t) {
        if (t % lanes == 0) shared.set(t, t / lanes, values[t]);
      });
      block_.barrier();
      block_.each(
          [&](int t) { values[t] = t % lanes < warps ? shared.get(t, t % lanes) : nothing; });
      within_warps(values, lanes, combine);
      block_.barrier();  // before the next reduction writes
    }
    return block_.agreed(values);
  }

  template <class T, class Combine>
  LOSSGATE_BLOCK_PROGRAM void within_warps(PerThread<T>& values, int lanes, Combine combine) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      PerThread<T> others = block_.exchanged(values, mask);
      block_.each([&](int t) { values[t] = combine(values[t], others[t]); });
    }
  }

  Block& block_;
  typename Block::template Shared<float> floats_;
  typename Block::template Shared<std::int64_t> integers_;
};

/// f(thread, lane, i) for every i below n; a step of the block takes threads x kPack of them.
template <class Block, class F>
LOSSGATE_BLOCK_PROGRAM void for_each_element(Block& block, std::int64_t n, F&& f) {
  const std::int64_t threads = block.threads();
  for (std::int64_t base = 0; base < n; base += threads * kPack) {
    block.each([&](int t) {
#pragma unroll 1
      for (int lane = 0; lane < kPack; ++lane) {
        const std::int64_t i = base + lane * threads + t;
        if (i < n) f(t, lane, i);
      }
    });
  }
}

/// f(thread, first, count, pack) for every pack of a row.
template <class Block, class Stored, class F>
LOSSGATE_BLOCK_PROGRAM void for_each_pack(Block& block, const Stored* row, std::int64_t n, F&& f) {
  const bool aligned = is_aligned(row);
  const std::int64_t step = static_cast<std::int64_t>(block.threads()) * kPack;
  for (std::int64_t base = 0; base < n; base += step) {
    block.each([&](int t) {
      const std::int64_t first = base + static_cast<std::int64_t>(t) * kPack;
      if (first >= n) return;
      const int count = block.tail(first, n);
      f(t, first, count, load_pack(row + first, count, aligned));
    });
  }
}

/// The sum of term(i) over all i below n, infinite or NaN only where the whole sum is: where a
/// partial sum overflowed, all is done again with terms shrunk by a power of two.
template <class Block, class Term>
LOSSGATE_BLOCK_PROGRAM float overflow_free_sum(Block& block, BlockReduction<Block>& reduction,
                                               std::int64_t n, Term&& term) {
  const auto scaled_sum = [&](float scale) {
    auto sums = block.template per_thread<Lanes>();
    block.each([&](int t) { sums[t] = Lanes{}; });
    for_each_element(
        block, n, [&](int t, int lane, std::int64_t i) { add_to(sums[t], lane, term(i) * scale); });
    return reduction.sum(sums);
  };
  const float sum = scaled_sum(1.0f);
  if (sum - sum == 0.0f) return sum;
  float scale = 1.0f;
  for (std::int64_t count = n; count > 0; count /= 2) scale *= 0.5f;
  return scaled_sum(scale) / scale;
}

}  // namespace lossgate::impl
