// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/elements.h"

namespace lossgate {

std::vector<double> elements_of(const Tensor& tensor) {
  std::vector<double> elements(static_cast<std::size_t>(tensor.size()));
  if (tensor.dtype == Dtype::f32) {  // as most are
    for (std::size_t i = 0; i < elements.size(); ++i) {
      float element;
      std::memcpy(&element, &tensor.bytes[i * sizeof element], sizeof element);
      elements[i] = element;
    }
    return elements;
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = tensor.at(static_cast<std::int64_t>(i));
  }
  return elements;
}

}  // namespace lossgate
