// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

/// Several doubles at once, in the compiler's own vectors (Eigen's arrays compare and select one by
/// one). A file that is compiled for an instruction set says how many fit its registers; what is
/// made of them is its own (lanes/avx2.cpp).
#ifndef LOSSGATE_LANES
#define LOSSGATE_LANES 2
#endif
#define LOSSGATE_LANES_JOINED(a, b) a##b
#define LOSSGATE_LANES_NAMED(number) LOSSGATE_LANES_JOINED(lanes_, number)
#define LOSSGATE_LANES_NAMESPACE LOSSGATE_LANES_NAMED(LOSSGATE_LANES)

namespace lossgate::reference {
inline namespace LOSSGATE_LANES_NAMESPACE {

inline constexpr int kLanes = LOSSGATE_LANES;

using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Mask = std::int64_t __attribute__((vector_size(kLanes * sizeof(double))));

#define LOSSGATE_LANEWISE [[gnu::always_inline]] inline

LOSSGATE_LANEWISE Doubles all_lanes(double x) { return x - Doubles{}; }
LOSSGATE_LANEWISE bool any(Mask mask) { return __builtin_reduce_or(mask) != 0; }
LOSSGATE_LANEWISE Doubles size_of_each(Doubles x) { return __builtin_elementwise_abs(x); }
LOSSGATE_LANEWISE Doubles larger(Doubles a, Doubles b) { return a > b ? a : b; }
LOSSGATE_LANEWISE Doubles smaller(Doubles a, Doubles b) { return a < b ? a : b; }
LOSSGATE_LANEWISE Doubles where(Mask mask, Doubles yes, Doubles no) { return mask ? yes : no; }
LOSSGATE_LANEWISE Doubles or_zero(Mask mask, Doubles x) {
  return __builtin_bit_cast(Doubles, mask & __builtin_bit_cast(Mask, x));
}

/// The lanes of `yes` where the mask says so, of whatever holds nothing but vectors.
template <class T>
LOSSGATE_LANEWISE T blended(Mask mask, const T& yes, const T& no) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(Doubles) == 0);
  using All = std::array<Doubles, sizeof(T) / sizeof(Doubles)>;
  const All a = __builtin_bit_cast(All, yes), b = __builtin_bit_cast(All, no);
  All result;
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = where(mask, a[i], b[i]);
  return __builtin_bit_cast(T, result);
}

/// exp(x) = power (1 + rest), |rest| < 0.42, for |x| < 700: Cody and Waite's reduction and a Taylor
/// polynomial, which keep expm1's digits where x is small.
struct ExpParts {
  Doubles power, rest;
};

LOSSGATE_LANEWISE ExpParts exp_parts(Doubles x) {
  constexpr double kRounding = 0x1.8p52, kLog2OfE = 0x1.71547652b82fep0;
  constexpr double kLn2 = 0x1.62e42feep-1, kLn2Tail = 0x1.a39ef35793c76p-33;
  const Doubles shifted = x * kLog2OfE + kRounding, n = shifted - kRounding;
  const Doubles r = (x - n * kLn2) - n * kLn2Tail, r2 = r * r, r4 = r2 * r2;
  const auto pair = [&](double a, double b) { return a + b * r; };
  // Estrin's order: r^2 (1/2! + r/3! + ... + r^11/13!)
  const Doubles low = pair(1.0 / 2, 1.0 / 6) + pair(1.0 / 24, 1.0 / 120) * r2;
  const Doubles middle = pair(1.0 / 720, 1.0 / 5040) + pair(1.0 / 40320, 1.0 / 362880) * r2;
  const Doubles high =
      pair(1.0 / 3628800, 1.0 / 39916800) + pair(1.0 / 479001600, 1.0 / 6227020800) * r2;
  const Doubles rest = r + r2 * (low + r4 * (middle + r4 * high));
  const Mask exponent = __builtin_bit_cast(Mask, shifted) << 52;
  return {__builtin_bit_cast(Doubles, exponent + __builtin_bit_cast(Mask, all_lanes(1.0))), rest};
}

/// f of each lane, for what is not worth a vector.
template <class F>
LOSSGATE_LANEWISE Doubles each(Doubles x, F&& f) {
  for (int i = 0; i < kLanes; ++i) x[i] = f(x[i]);
  return x;
}

}  // namespace LOSSGATE_LANES_NAMESPACE
}  // namespace lossgate::reference
