// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/fenced_arrays.h"

#include <gtest/gtest.h>

#include <cstring>

#include "reference/spec/dtype.h"

namespace lossgate::impl {
namespace {

std::uintptr_t number(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

TEST(FencedArrays, LieAsFarBehindAnAlignedPlaceAsTheyAreTold) {
  FencedArrays arrays;
  EXPECT_EQ(number(arrays.add("a", 100, 0)) % 64, 0u);
  EXPECT_EQ(number(arrays.add("b", 100, 4)) % 64, 4u);
  EXPECT_EQ(number(arrays.add("c", 0, 1)) % 64, 1u);
  EXPECT_EQ(number(arrays.add("d", 100000, 8)) % 64, 8u);
}

TEST(FencedArrays, HoldNaNInEveryFormatUntilTheyAreWritten) {
  FencedArrays arrays;
  const std::byte* data = arrays.add("x", 64, 0);
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    EXPECT_NE(decode(dtype, data), decode(dtype, data)) << name(dtype);
  }
}

TEST(FencedArrays, SeeWhatIsWrittenBesideThem) {
  FencedArrays arrays;
  std::byte *first = arrays.add("first", 12, 0), *second = arrays.add("second", 40, 4);
  std::memset(first, 0, 12);
  std::memset(second, 0, 40);
  EXPECT_EQ(arrays.trespass(), std::nullopt);
  second[40] = std::byte{1};
  EXPECT_EQ(arrays.trespass(), "behind the end of 'second'");
  first[-4] = std::byte{1};
  EXPECT_EQ(arrays.trespass(), "before the beginning of 'first'");
  arrays.clear();
  arrays.add("third", 12, 0);
  EXPECT_EQ(arrays.trespass(), std::nullopt);
}

TEST(FencedArrays, KnowWhoseFenceAnAddressIsIn) {
  FencedArrays arrays;
  const std::byte* data = arrays.add("x", 4096, 0);
  EXPECT_STREQ(arrays.place_of(data + 4096 + 64).side, "behind the end");
  EXPECT_STREQ(arrays.place_of(data - 1).side, "before the beginning");
  EXPECT_STREQ(arrays.place_of(data - 1).array, "x");
  EXPECT_EQ(arrays.place_of(data + 10).side, nullptr);
  EXPECT_EQ(arrays.place_of(nullptr).side, nullptr);
}

TEST(FencedArraysDeathTest, EndTheProcessThatGoesFartherAndSayWhere) {
  FencedArrays arrays;
  volatile std::byte* data = arrays.add("mask", 100, 0);
  EXPECT_DEATH(
      {
        tell_faults(arrays);
        data[200] = std::byte{1};
      },
      "it reached behind the end of 'mask'");
}

TEST(FencedArrays, AreAsManyAsNeeded) {
  FencedArrays arrays;
  for (int call = 0; call < 3; ++call) {
    arrays.clear();
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t bytes = i * 1000 * static_cast<std::size_t>(call + 1);
      std::memset(arrays.add("x", bytes, 0), 1, bytes);
    }
    EXPECT_EQ(arrays.trespass(), std::nullopt);
  }
}

}  // namespace
}  // namespace lossgate::impl
