// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "impl/cuda/policy_math.h"
#include "reference/spec/case.h"

namespace lossgate::impl {

/// Reads one element at a time, widened to F: the host form of a kernel's load.
template <class F>
class HostField {
 public:
  explicit HostField(const Tensor& tensor) : data_(tensor.bytes.data()), dtype_(tensor.dtype) {}

  F operator[](std::size_t i) const {
    if (dtype_ == Dtype::f32) return static_cast<F>(load<float>(i));
    if (dtype_ == Dtype::f64) return static_cast<F>(load<double>(i));
    if (dtype_ == Dtype::bf16) {
      return static_cast<F>(std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(i)} << 16));
    }
    return static_cast<F>(decode(dtype_, data_ + i * size_of(dtype_)));
  }

 private:
  template <class T>
  T load(std::size_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof value, sizeof value);
    return value;
  }

  const std::byte* data_;
  Dtype dtype_;
};

/// Writes one element at a time, rounded once to the tensor's format.
template <class F>
class HostOutput {
 public:
  explicit HostOutput(Tensor& tensor) : data_(tensor.bytes.data()), dtype_(tensor.dtype) {}

  void set(std::size_t i, F value) const {
    if (dtype_ == (sizeof(F) == 8 ? Dtype::f64 : Dtype::f32)) {
      std::memcpy(data_ + i * sizeof value, &value, sizeof value);
    } else {
      encode(dtype_, static_cast<double>(value), data_ + i * size_of(dtype_));
    }
  }

 private:
  std::byte* data_;
  Dtype dtype_;
};

template <class F>
Limit<F> limit_option(const LossSpec& spec, std::string_view option) {
  if (spec.is_none(option)) return {};
  return {true, static_cast<F>(spec.number(option))};
}

}  // namespace lossgate::impl
