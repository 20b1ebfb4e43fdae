// SPDX-License-Identifier: Apache-2.0
#include "ci/shifting.h"

#include <algorithm>
#include <utility>

#include "reference/spec/signature.h"

namespace lossgate::ci {
namespace {

/// Without the first position of each sequence, or the last.
Tensor cut(const Tensor& tensor, bool first) {
  const std::int64_t rows = tensor.extents[0], tokens = tensor.extents[1];
  Extents extents = tensor.extents;
  --extents[1];
  Tensor shorter = Tensor::zeros(tensor.dtype, std::move(extents));
  if (rows * tokens == 0) return shorter;
  const auto row = static_cast<std::ptrdiff_t>(tensor.bytes.size()) / rows;
  const auto position = row / tokens;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto begin = tensor.bytes.begin() + r * row + (first ? position : 0);
    std::copy(begin, begin + row - position, shorter.bytes.begin() + r * (row - position));
  }
  return shorter;
}

}  // namespace

bool shifts(const impl::Subject& subject) {
  return std::ranges::any_of(subject.arguments, [](const auto& argument) {
    return impl::is_converted(argument.second, "shifted");
  });
}

bool is_of_token(const Field& field) {
  if (field.role == Role::label || field.role == Role::mask) return true;
  const Quantity of = field.quantity;
  const bool of_position =
      of == Quantity::logit || of == Quantity::hidden_state || of == Quantity::value;
  return field.axes.size() == 2 && !of_position;
}

Case paired_with_the_next(const LossSignature& signature, Case c) {
  if (c.shape[Axis::tokens] < 1) return c;
  for (const Field& field : signature.fields) {
    if (!is_positional(field)) continue;
    Tensor& tensor = c.batch.at(field.name);
    tensor = cut(tensor, is_of_token(field));
  }
  --c.shape[Axis::tokens];
  return c;
}

}  // namespace lossgate::ci
