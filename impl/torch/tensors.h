// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include "reference/spec/case.h"

namespace lossgate::impl {

at::ScalarType scalar_type(Dtype dtype);

/// The format in which a loss is computed from tensors stored in `stored`: f64 for f64, else f32.
/// The 16-bit formats are widened before the first operation: exp(20) overflows f16.
at::ScalarType compute_type(at::ScalarType stored);

/// The tensor as it lies in memory under `layout`. Contiguous ones share the bytes, which must
/// outlive the result; the others are copies with the same values.
at::Tensor as_torch(Tensor& tensor, Layout layout);

/// A dense row-major copy in `dtype`, rounded once where that is narrower.
Tensor from_torch(const at::Tensor& tensor, Dtype dtype);

}  // namespace lossgate::impl
