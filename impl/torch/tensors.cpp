// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/tensors.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace lossgate::impl {
namespace {

/// A view with the strides of `layout` into a buffer of its own. The buffer is filled with a value
/// that would show if a loss read beside its elements.
at::Tensor empty_in(Layout layout, at::IntArrayRef extents, const at::TensorOptions& options) {
  const auto buffer = [&](at::IntArrayRef shape) { return at::full(shape, 77, options); };
  const std::int64_t count = c10::multiply_integers(extents);
  if (layout == Layout::padded_rows && !extents.empty()) {
    std::vector<std::int64_t> wider = extents.vec();
    wider.back() += 3;
    return buffer(wider).narrow(-1, 0, extents.back());
  }
  if (layout == Layout::transposed && extents.size() >= 2) {
    std::vector<std::int64_t> swapped = extents.vec();
    std::swap(swapped[0], swapped[1]);
    return buffer(swapped).transpose(0, 1);
  }
  if (layout == Layout::transposed && extents.size() == 1) {
    return buffer({extents[0], 2}).select(1, 0);
  }
  if (layout == Layout::sliced && extents.size() >= 2) {
    const auto axis = std::max<std::int64_t>(std::ssize(extents) - 2, 1);
    std::vector<std::int64_t> wider = extents.vec();
    ++wider[static_cast<std::size_t>(axis)];
    return buffer(wider).narrow(axis, extents.size() == 2, extents[axis]);
  }
  return buffer({count + 1}).narrow(0, 1, count).view(extents);
}

}  // namespace

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return at::kDouble;
    case Dtype::f32:
      return at::kFloat;
    case Dtype::f16:
      return at::kHalf;
    case Dtype::bf16:
      return at::kBFloat16;
    case Dtype::i64:
      return at::kLong;
    case Dtype::i32:
      return at::kInt;
    case Dtype::u8:
      return at::kByte;
    case Dtype::boolean:
      return at::kBool;
  }
  return at::kFloat;
}

at::ScalarType compute_type(at::ScalarType stored) {
  return stored == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor as_torch(Tensor& tensor, Layout layout) {
  const at::TensorOptions options = at::TensorOptions().dtype(scalar_type(tensor.dtype));
  const at::Tensor plain = at::from_blob(tensor.bytes.data(), tensor.extents, options);
  if (layout == Layout::contiguous || tensor.extents.empty()) return plain;
  at::Tensor strided = empty_in(layout, tensor.extents, options);
  strided.copy_(plain);
  return strided;
}

Tensor from_torch(const at::Tensor& tensor, Dtype dtype) {
  const at::Tensor dense = tensor.detach().to(at::kCPU, scalar_type(dtype)).contiguous();
  Tensor result{.dtype = dtype, .extents = dense.sizes().vec(), .bytes = {}};
  const auto* first = static_cast<const std::byte*>(dense.const_data_ptr());
  result.bytes.assign(first, first + dense.nbytes());
  return result;
}

}  // namespace lossgate::impl
