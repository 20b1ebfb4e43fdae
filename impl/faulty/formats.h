// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "reference/spec/dtype.h"

/// Storage formats of a tape: every result is computed in Value and rounded to the format, as eager
/// 16-bit tensor programs do.
namespace lossgate::impl {

struct F64 {
  using Value = double;
  static constexpr Dtype kDtype = Dtype::f64;
  static Value rounded(Value x) { return x; }
};

struct F32 {
  using Value = float;
  static constexpr Dtype kDtype = Dtype::f32;
  static Value rounded(Value x) { return x; }
};

struct BF16 {
  using Value = float;
  static constexpr Dtype kDtype = Dtype::bf16;
  static Value rounded(Value x) { return static_cast<Value>(round_to(kDtype, x)); }
};

struct F16 {
  using Value = float;
  static constexpr Dtype kDtype = Dtype::f16;
  static Value rounded(Value x) { return static_cast<Value>(round_to(kDtype, x)); }
};

}  // namespace lossgate::impl
