// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "impl/cuda/stepped_block.h"

/// Blocks with one fault each, such as a program or its block may have on a GPU.
namespace lossgate::impl {

struct FakeBlockWithoutBarrier : SteppedBlock {
  using SteppedBlock::SteppedBlock;
  void barrier() {}
};

/// Adds up neighbours first, where the declared order adds halves.
struct FakeBlockOfNeighbours : SteppedBlock {
  using SteppedBlock::SteppedBlock;
  template <class T>
  PerThread<T> exchanged(const PerThread<T>& values, int mask) const {
    return SteppedBlock::exchanged(values, lanes() / 2 / mask);
  }
};

struct FakeBlockWithNarrowIndex : SteppedBlock {
  using SteppedBlock::SteppedBlock;
  using Index = std::uint32_t;
};

struct FakeBlockWithLongTail : SteppedBlock {
  using SteppedBlock::SteppedBlock;
  static int tail(std::int64_t first, std::int64_t n) { return SteppedBlock::tail(first, n + 1); }
};

struct FakeBlockWithShortTail : SteppedBlock {
  using SteppedBlock::SteppedBlock;
  static int tail(std::int64_t first, std::int64_t n) {
    const int count = SteppedBlock::tail(first, n);
    return count < kPack ? count - 1 : count;
  }
};

}  // namespace lossgate::impl
