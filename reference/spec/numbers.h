// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/tensor.h"

/// The same numbers in another format.
namespace lossgate {

/// Gives a tensor another's numbers: bit for bit, or each rounded to its own dtype.
inline void take_numbers(Tensor& tensor, const Tensor& other) {
  if (tensor.dtype == other.dtype) {
    tensor.bytes = other.bytes;
    return;
  }
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, other.at(i));
}

/// The tensor in this dtype.
inline Tensor as_dtype(Tensor tensor, Dtype dtype) {
  if (tensor.dtype == dtype) return tensor;
  Tensor other = Tensor::zeros(dtype, tensor.extents);
  take_numbers(other, tensor);
  return other;
}

}  // namespace lossgate
