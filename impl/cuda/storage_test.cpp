// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "reference/spec/dtype.h"

namespace lossgate::impl {
namespace {

template <class Stored>
void expect_widened_like(Dtype dtype) {
  for (unsigned word = 0; word < 0x10000; ++word) {
    const Stored stored{static_cast<std::uint16_t>(word)};
    const double expected = decode(dtype, reinterpret_cast<const std::byte*>(&stored));
    const double actual = widened(stored);
    ASSERT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected))) << word;
    ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << word;
  }
}

TEST(Storage, WidensEveryNumberExactly) {
  expect_widened_like<Bf16>(Dtype::bf16);
  expect_widened_like<F16>(Dtype::f16);
}

template <class Stored>
void expect_stored_like(Dtype dtype, float x) {
  Stored stored{}, expected{};
  store(x, &stored);
  encode(dtype, static_cast<double>(x), reinterpret_cast<std::byte*>(&expected));
  if (std::isnan(x)) {
    EXPECT_TRUE(std::isnan(widened(stored)));
  } else {
    EXPECT_EQ(stored.bits, expected.bits) << x;
  }
}

TEST(Storage, RoundsOnceToNearestTiesToEven) {
  std::mt19937 engine(1);
  for (int i = 0; i < 200000; ++i) {
    const float x = as_float(static_cast<std::uint32_t>(engine()));
    expect_stored_like<Bf16>(Dtype::bf16, x);
    expect_stored_like<F16>(Dtype::f16, x);
  }
  for (unsigned word = 0; word < 0x7c00; ++word) {  // every tie between neighbours of f16
    const float low = widened(F16{static_cast<std::uint16_t>(word)}),
                high =
                    word < 0x7bff ? widened(F16{static_cast<std::uint16_t>(word + 1)}) : 65536.0f;
    for (float x :
         {low, (low + high) / 2, -(low + high) / 2, std::nextafterf((low + high) / 2, 0)}) {
      expect_stored_like<F16>(Dtype::f16, x);
    }
  }
}

TEST(Packs, AreTheSameOnBothPaths) {
  alignas(16) Bf16 memory[kPack + 1];
  for (int i = 0; i <= kPack; ++i) store(0.5f * static_cast<float>(i), memory + i);
  ASSERT_TRUE(is_aligned(memory));
  ASSERT_FALSE(is_aligned(memory + 1));
  for (bool aligned : {true, false}) {
    EXPECT_EQ(load_pack(memory, kPack, aligned).at[5], 2.5f);
    alignas(16) F16 out[kPack] = {};
    store_pack(load_pack(memory, kPack, aligned), out, kPack, aligned);
    EXPECT_EQ(widened(out[7]), 3.5f);
  }
}

TEST(Packs, LeaveAloneWhatIsBeyondTheirCount) {
  alignas(16) float memory[kPack] = {1, 2, 3, 4, 5, 6, 7, 8};
  store_pack(Pack{{9, 9, 9, 9, 9, 9, 9, 9}}, memory, 3, true);
  EXPECT_EQ(memory[2], 9.0f);
  EXPECT_EQ(memory[3], 4.0f);
}

}  // namespace
}  // namespace lossgate::impl
