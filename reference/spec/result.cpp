// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/result.h"

#include <algorithm>

namespace lossgate {

std::vector<OutputInfo> outputs_of(const LossSignature& signature, const Case& c) {
  const Dtype dtype = float_dtype(signature, c);
  std::vector<OutputInfo> outputs;
  const auto gradients = std::ranges::count(signature.fields, Role::differentiable, &Field::role);
  outputs.reserve(1 + signature.outputs.size() + static_cast<std::size_t>(gradients));
  if (c.spec.reduction != Reduction::none) {
    outputs.push_back({.name = "loss",
                       .kind = OutputKind::loss,
                       .field = "",
                       .dtype = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32,
                       .axes = {},
                       .extents = {}});
  }
  for (const OutputField& output : signature.outputs) {
    const Dtype own = output.dtypes.empty() ? dtype : output.dtypes.front();
    const Dtype widened = own == Dtype::f16 || own == Dtype::bf16 ? Dtype::f32 : own;
    outputs.push_back({.name = output.name,
                       .kind = OutputKind::value,
                       .field = "",
                       .dtype = widened,
                       .axes = output.axes,
                       .extents = c.shape.of(output.axes),
                       .range = output.range ? output.range(c) : std::nullopt});
  }
  for (const Field& field : signature.fields) {
    if (field.role != Role::differentiable) continue;
    outputs.push_back({.name = "gradient." + field.name,
                       .kind = OutputKind::gradient,
                       .field = field.name,
                       .dtype = c.batch.at(field.name).dtype,
                       .axes = field.axes,
                       .extents = c.shape.of(field.axes)});
  }
  return outputs;
}

const Tensor* LossResult::find(std::string_view output) const {
  for (const Output& candidate : outputs) {
    if (candidate.name == output) return &candidate.tensor;
  }
  return nullptr;
}

}  // namespace lossgate
