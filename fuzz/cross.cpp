// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cross.h"

#include <utility>

#include "fuzz/level_rows.h"
#include "fuzz/transplant.h"

namespace lossgate::fuzz {

Case crossed(const LossSignature& signature, const Case& first, const Case& second,
             Choices& choices) {
  Case child = first;
  const auto either = [&] { return choices.sometimes(0.5); };
  LossSpec spec = first.spec;
  for (const auto& [name, value] : second.spec.options) {
    if (either()) spec.set(name, value);
  }
  follow(signature, spec);
  if (either()) spec.reduction = second.spec.reduction;
  if (accepts(signature, child, spec)) child.spec = std::move(spec);
  if (either()) child.layout = second.layout;
  if (either()) child.upstream = second.upstream;
  const auto same = [&](Axis axis) { return first.shape[axis] == second.shape[axis]; };
  if (either() && same(Axis::sequences)) child.split = second.split;
  if (shape_follows_data(signature)) return child;
  const Region both = common_region(signature, second, child);
  for (const Field& field : signature.fields) {
    const bool names_tokens = field.quantity == Quantity::label && !same(Axis::vocab);
    const bool stands = may_stand(signature, field, second, child.spec);
    if (either() && !names_tokens && stands) take(field, second, both, child);
  }
  level_rows(signature, child);
  return child;
}

}  // namespace lossgate::fuzz
