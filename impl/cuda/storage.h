// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "impl/cuda/host_device.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

/// The formats in which kernels read and write; all arithmetic between is in float.
namespace lossgate::impl {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

LOSSGATE_HOST_DEVICE inline float as_float(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

LOSSGATE_HOST_DEVICE inline std::uint32_t as_bits(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}

LOSSGATE_HOST_DEVICE inline float widened(float x) { return x; }

LOSSGATE_HOST_DEVICE inline float widened(Bf16 x) {
  return as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

LOSSGATE_HOST_DEVICE inline float widened(F16 x) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(x.bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return as_float(sign | 0x70000000u | rest);  // infinity, NaN
  // Read as a float the exponent is too small by 112; the product is exact, subnormal or not.
  return as_float(sign | as_bits(as_float(rest) * 0x1p112f));
#endif
}

/// Rounded once, to nearest, ties to even; overflow becomes infinity.
LOSSGATE_HOST_DEVICE inline void store(float x, float* to) { *to = x; }

LOSSGATE_HOST_DEVICE inline void store(float x, Bf16* to) {
  const std::uint32_t bits = as_bits(x);
  const std::uint32_t odd = (bits >> 16) & 1u;
  to->bits = x != x ? static_cast<std::uint16_t>((bits >> 16) | 0x40u)
                    : static_cast<std::uint16_t>((bits + 0x7fffu + odd) >> 16);
}

LOSSGATE_HOST_DEVICE inline void store(float x, F16* to) {
#ifdef __CUDA_ARCH__
  to->bits = __half_as_ushort(__float2half_rn(x));
#else
  const std::uint32_t bits = as_bits(x), size = bits & 0x7fffffffu;
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t rounded = 0;
  if (size > 0x7f800000u) {
    rounded = 0x7e00u;
  } else if (size >= 0x477ff000u) {  // halfway between the largest number and the next
    rounded = 0x7c00u;
  } else if (size < 0x38800000u) {  // subnormal: the sum's last place is that of the result
    rounded = as_bits(as_float(size) + 0.5f) - as_bits(0.5f);
  } else {
    rounded = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  }
  to->bits = static_cast<std::uint16_t>(sign | rounded);
#endif
}

/// Into an array that may be absent.
template <class Stored>
LOSSGATE_HOST_DEVICE void store_if_there(float x, Stored* to) {
  if (to) store(x, to);
}

/// So many neighbours are one thread's in one step: one 16-byte access of a 16-bit format, two of
/// f32. It is the same for all formats, so that sums are formed in one order.
inline constexpr int kPack = 8;

struct Pack {
  float at[kPack];
};

/// Whether packs of the array lie on 16-byte borders.
template <class Stored>
LOSSGATE_HOST_DEVICE bool is_aligned(const Stored* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

/// As much of a pack as one access moves.
template <class Stored>
struct alignas(16) Words {
  static constexpr int kCount = 16 / sizeof(Stored);
  Stored at[kCount];
};

/// `count` numbers, at most kPack; the rest of the pack is not set. `aligned` takes the vector path
/// where the pack is whole.
template <class Stored>
LOSSGATE_HOST_DEVICE Pack load_pack(const Stored* from, int count, bool aligned) {
  Pack pack;
  if (aligned && count == kPack) {
    constexpr int kWords = Words<Stored>::kCount;
#pragma unroll
    for (int i = 0; i < kPack; i += kWords) {
      Words<Stored> words;
#ifdef __CUDA_ARCH__
      *reinterpret_cast<uint4*>(&words) = *reinterpret_cast<const uint4*>(from + i);
#else
      std::memcpy(&words, __builtin_assume_aligned(from + i, 16), sizeof words);
#endif
#pragma unroll
      for (int j = 0; j < kWords; ++j) pack.at[i + j] = widened(words.at[j]);
    }
    return pack;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    if (i < count) pack.at[i] = widened(from[i]);
  }
  return pack;
}

template <class Stored>
LOSSGATE_HOST_DEVICE void store_pack(const Pack& pack, Stored* to, int count, bool aligned) {
  if (aligned && count == kPack) {
    constexpr int kWords = Words<Stored>::kCount;
#pragma unroll
    for (int i = 0; i < kPack; i += kWords) {
      Words<Stored> words;
#pragma unroll
      for (int j = 0; j < kWords; ++j) store(pack.at[i + j], &words.at[j]);
#ifdef __CUDA_ARCH__
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(&words);
#else
      std::memcpy(__builtin_assume_aligned(to + i, 16), &words, sizeof words);
#endif
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    if (i < count) store(pack.at[i], to + i);
  }
}

}  // namespace lossgate::impl
