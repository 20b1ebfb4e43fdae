// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "impl/cuda/fake_blocks.h"
#include "impl/cuda/loop_block.h"
#include "impl/pairwise_sum.h"

namespace lossgate::impl {
namespace {

std::vector<float> numbers(std::size_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> drawn(count);
  for (float& x : drawn) x = normal(engine);
  return drawn;
}

/// One number a thread, added by the block.
template <class Block>
float sum_over(Block& block, const std::vector<float>& numbers) {
  BlockReduction<Block> reduction(block);
  auto terms = block.template per_thread<float>();
  block.each([&](int t) { terms[t] = numbers[static_cast<std::size_t>(t)]; });
  return reduction.sum(terms);
}

/// The declared order, written down once more: halves of a warp, then halves of the warps' sums.
float in_halves(std::vector<float> terms) {
  for (std::size_t half = terms.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) terms[i] += terms[i + half];
  }
  return terms[0];
}

float in_declared_order(const std::vector<float>& terms) {
  std::vector<float> warps(kWarpThreads, 0.0f);
  for (std::size_t w = 0; w * kWarpThreads < terms.size(); ++w) {
    const auto first = terms.begin() + static_cast<std::ptrdiff_t>(w * kWarpThreads);
    warps[w] = in_halves(std::vector<float>(first, first + kWarpThreads));
  }
  return in_halves(warps);
}

TEST(BlockThreads, AreAsManyAsHaveSomethingToDo) {
  EXPECT_EQ(block_threads(0), 32);
  EXPECT_EQ(block_threads(256), 32);
  EXPECT_EQ(block_threads(257), 64);
  EXPECT_EQ(block_threads(2048), 256);
  EXPECT_EQ(block_threads(std::int64_t{1} << 40), 256);
}

TEST(Reduction, AddsInTheDeclaredOrder) {
  for (int threads : {32, 64, 128, 256}) {
    const std::vector<float> terms = numbers(static_cast<std::size_t>(threads));
    SteppedBlock block(threads);
    EXPECT_EQ(sum_over(block, terms), in_declared_order(terms)) << threads;
  }
}

TEST(Reduction, ShowsAnotherOrderThanTheDeclaredOne) {
  const std::vector<float> terms = numbers(256);
  FakeBlockOfNeighbours block(256);
  EXPECT_NE(sum_over(block, terms), in_declared_order(terms));
}

TEST(Reduction, GivesTheSameBitsInWhateverOrderThreadsRun) {
  const std::vector<float> terms = numbers(256);
  SteppedBlock forwards(256), backwards(256, ThreadOrder::backwards),
      shuffled(256, ThreadOrder::shuffled);
  const float sum = sum_over(forwards, terms);
  EXPECT_EQ(sum_over(backwards, terms), sum);
  EXPECT_EQ(sum_over(shuffled, terms), sum);
}

TEST(Reduction, ShowsAMissingBarrier) {
  FakeBlockWithoutBarrier block(64);
  EXPECT_THROW(sum_over(block, numbers(64)), BlockFault);
  FakeBlockWithoutBarrier warp(32);  // nothing goes through shared memory
  EXPECT_NO_THROW(sum_over(warp, numbers(32)));
}

TEST(Reduction, ShowsABarrierThatIsMissingBeforeTheNextReduction) {
  struct FirstBarrierOnly : SteppedBlock {
    using SteppedBlock::SteppedBlock;
    void barrier() {
      if (++barriers == 1) SteppedBlock::barrier();
    }
    int barriers = 0;
  };
  FirstBarrierOnly block(64);
  BlockReduction<FirstBarrierOnly> reduction(block);
  auto terms = block.per_thread<float>();
  block.each([&](int t) { terms[t] = 1.0f; });
  EXPECT_EQ(reduction.sum(terms), 64.0f);
  EXPECT_THROW(reduction.sum(terms), BlockFault);
}

TEST(Reduction, CountsIn64Bits) {
  SteppedBlock block(64);
  BlockReduction<SteppedBlock> reduction(block);
  auto counts = block.per_thread<std::int64_t>();
  block.each([&](int t) { counts[t] = std::int64_t{1} << 40; });
  EXPECT_EQ(reduction.sum(counts), std::int64_t{64} << 40);
}

TEST(Registers, HoldNoZerosBeforeTheyAreSet) {
  SteppedBlock block(32);
  EXPECT_TRUE(std::isnan(block.per_thread<float>()[3]));
}

TEST(SharedMemory, RefusesElementsThatNobodyWrote) {
  SteppedBlock block(32);
  auto shared = block.shared<float>(4);
  EXPECT_THROW(shared.get(0, 1), BlockFault);
  EXPECT_THROW(shared.set(0, 4, 1.0f), BlockFault);
}

TEST(SharedMemory, ShowsTwoWriters) {
  SteppedBlock block(32);
  auto shared = block.shared<float>(4);
  shared.set(0, 1, 1.0f);
  shared.set(0, 1, 2.0f);
  EXPECT_THROW(shared.set(1, 1, 2.0f), BlockFault);
  block.barrier();
  EXPECT_NO_THROW(shared.set(1, 1, 2.0f));
}

TEST(Agreed, IsAFaultWhereThreadsDiffer) {
  SteppedBlock block(32);
  auto values = block.per_thread<float>();
  block.each([&](int t) { values[t] = t < 31 ? 1.0f : 2.0f; });
  EXPECT_THROW(block.agreed(values), BlockFault);
}

/// Every element of a row of n, added, with how many were seen.
template <class Block>
std::pair<float, std::int64_t> added(Block& block, const float* row, std::int64_t n) {
  BlockReduction<Block> reduction(block);
  auto sums = block.template per_thread<Lanes>();
  auto counts = block.template per_thread<std::int64_t>();
  block.each([&](int t) {
    sums[t] = Lanes{};
    counts[t] = 0;
  });
  for_each_pack(block, row, n, [&](int t, std::int64_t, int count, const Pack& pack) {
    for (int j = 0; j < count; ++j) sums[t].at[j] += pack.at[j];
    counts[t] += count;
  });
  return {reduction.sum(sums), reduction.sum(counts)};
}

TEST(Packs, CoverEveryElementOnceAtEveryLengthAndAlignment) {
  std::vector<float> memory(5000, 1.0f);
  for (std::int64_t offset : {0, 1, 3}) {
    for (std::int64_t n : {1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 4095, 4097}) {
      SteppedBlock block(block_threads(n));
      const auto [sum, count] = added(block, memory.data() + offset, n);
      EXPECT_EQ(count, n) << offset;
      EXPECT_EQ(sum, static_cast<float>(n)) << offset;
    }
  }
}

TEST(Packs, ShowATailThatIsOffByOne) {
  std::vector<float> memory(300, 1.0f);
  memory[257] = std::nanf("");  // what lies beside an array in tests
  FakeBlockWithLongTail longer(64);
  EXPECT_TRUE(std::isnan(added(longer, memory.data(), 257).first));
  FakeBlockWithShortTail shorter(64);
  EXPECT_EQ(added(shorter, memory.data(), 257).first, 256.0f);
}

TEST(Packs, AreAddedInOneOrderWhateverTheAlignment) {
  std::vector<float> memory = numbers(4098);
  std::vector<float> moved(memory.begin() + 1, memory.end());
  SteppedBlock block(256);
  EXPECT_EQ(added(block, memory.data() + 1, 4097).first, added(block, moved.data(), 4097).first);
}

TEST(OverflowFreeSum, SurvivesPartialSumsThatOverflow) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> terms = {most, most, -most, -most, most};
  LoopBlock block;
  BlockReduction<LoopBlock> reduction(block);
  const auto sum = [&](std::int64_t n) {
    return overflow_free_sum(block, reduction, n,
                             [&](std::int64_t i) { return terms[static_cast<std::size_t>(i)]; });
  };
  EXPECT_EQ(sum(4), 0.0f);
  EXPECT_FLOAT_EQ(sum(5), most);
  EXPECT_EQ(sum(2), HUGE_VALF);
}

}  // namespace
}  // namespace lossgate::impl
