// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reference/spec/tensor.h"

namespace lossgate {

/// Every element, as Tensor::at has them one by one: whole tensors are decoded faster.
std::vector<double> elements_of(const Tensor& tensor);

}  // namespace lossgate
