// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "impl/cuda/host_arrays.h"
#include "impl/cuda/launch.h"
#include "impl/cuda/loop_block.h"
#include "impl/cuda/stepped_block.h"

/// The launches of launch.h on the host, block after block: `Blocks` says how a block is run.
namespace lossgate::impl {

/// Thread by thread, in an order that changes from block to block, under watch.
struct SteppedBlocks {
  template <class F>
  static void run(std::int64_t count, int threads, F&& f) {
    constexpr ThreadOrder kOrders[] = {ThreadOrder::shuffled, ThreadOrder::backwards,
                                       ThreadOrder::forwards};
    for (std::int64_t i = 0; i < count; ++i) {
      SteppedBlock block(threads, kOrders[i % 3]);
      f(block, i);
    }
  }
};

/// As fast as a loop can.
struct LoopBlocks {
  template <class F>
  static void run(std::int64_t count, int, F&& f) {
    LoopBlock block;
    for (std::int64_t i = 0; i < count; ++i) f(block, i);
  }
};

template <class Blocks>
class HostForm {
 public:
  static const KernelMemory& memory() { return kHostMemory; }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }

  /// The sum of terms that are there.
  static float loss(const TokenArrays& batch) {
    float total = 0.0f;
    Blocks::run(1, block_threads(batch.sequences * batch.tokens),
                [&](auto& block, std::int64_t) { sum_terms(block, batch, &total); });
    return total;
  }

  template <class Stored>
  static float loss(const GrpoArrays<Stored>& arrays) {
    run_sequences(arrays.batch, [&](auto& block, std::int64_t sequence) {
      GrpoSequence(block, arrays, sequence).run();
    });
    return loss(arrays.batch);
  }

  template <class Stored>
  static float loss(const ValueArrays<Stored>& arrays) {
    run_sequences(arrays.batch, [&](auto& block, std::int64_t sequence) {
      value_sequence(block, arrays, sequence);
    });
    return loss(arrays.batch);
  }

  template <class Stored>
  static float loss(const LogProbArrays<Stored>& arrays) {
    run_rows(arrays.batch, arrays.vocab,
             [&](auto& block, std::int64_t position) { log_prob_row(block, arrays, position); });
    return loss(arrays.batch);
  }

  template <class Stored>
  static float loss(const JsdArrays<Stored>& arrays) {
    count(arrays.batch);
    run_rows(arrays.batch, arrays.vocab,
             [&](auto& block, std::int64_t position) { JsdRow(block, arrays, position).run(); });
    return loss(arrays.batch);
  }

  template <class Stored>
  static float loss(const SparseJsdArrays<Stored>& arrays) {
    count(arrays.batch);
    run_rows(arrays.batch, arrays.vocab, [&](auto& block, std::int64_t position) {
      SparseJsdRow(block, arrays, position).run();
    });
    return loss(arrays.batch);
  }

  template <class Stored>
  static float loss(const LogitsGrpoArrays<Stored>& arrays) {
    const TokenArrays& batch = arrays.grpo.batch;
    const auto each_row = [&](auto&& work) {
      run_rows(batch, arrays.vocab, [&](auto& block, std::int64_t position) {
        LogitsGrpoRow row(block, arrays, position);
        work(row);
      });
    };
    if (!arrays.grpo.options.sequence_level) {
      count(batch);
      each_row([](auto& row) { row.run(); });
      return loss(batch);
    }
    each_row([](auto& row) { row.take_log_prob(); });
    const float total = loss(arrays.grpo);
    if (arrays.gradient.data) each_row([](auto& row) { row.write_logits_gradient(); });
    return total;
  }

 private:
  template <class F>
  static void run_sequences(const TokenArrays& batch, F&& f) {
    Blocks::run(batch.sequences, block_threads(batch.tokens), f);
  }

  template <class F>
  static void run_rows(const TokenArrays& batch, std::int64_t vocab, F&& f) {
    Blocks::run(batch.sequences * batch.tokens, block_threads(vocab), f);
  }

  static void count(const TokenArrays& batch) {
    run_sequences(
        batch, [&](auto& block, std::int64_t sequence) { count_sequence(block, batch, sequence); });
  }
};

}  // namespace lossgate::impl
