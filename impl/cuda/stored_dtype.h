// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/storage.h"
#include "reference/spec/dtype.h"

namespace lossgate::impl {

/// The format of an array of T.
template <class T>
inline constexpr Dtype kDtype = Dtype::f32;
template <>
inline constexpr Dtype kDtype<Bf16> = Dtype::bf16;
template <>
inline constexpr Dtype kDtype<F16> = Dtype::f16;
template <>
inline constexpr Dtype kDtype<std::uint8_t> = Dtype::u8;
template <>
inline constexpr Dtype kDtype<std::int32_t> = Dtype::i32;
template <>
inline constexpr Dtype kDtype<std::int64_t> = Dtype::i64;

}  // namespace lossgate::impl
