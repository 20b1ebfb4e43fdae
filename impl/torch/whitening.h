// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

namespace lossgate::impl {

/// Mean 0 and deviation 1 over valid entries, or, without `shift_mean`, the mean that there was; 0
/// elsewhere. Refuses a negative epsilon.
at::Tensor whitened(const at::Tensor& x, const at::Tensor& valid, bool shift_mean, double epsilon);

}  // namespace lossgate::impl
