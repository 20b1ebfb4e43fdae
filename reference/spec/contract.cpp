// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/contract.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/spec/groups.h"
#include "reference/spec/largest.h"
#include "reference/spec/lists.h"
#include "reference/spec/masked.h"
#include "reference/spec/padding.h"

namespace lossgate {
namespace {

/// Whether the valid positions of each sequence have one value.
bool one_per_sequence(const Tensor& tensor, const std::vector<bool>& valid, std::int64_t tokens) {
  std::int64_t first = -1;  // valid position of the row
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (i % tokens == 0) first = -1;
    if (!valid[static_cast<std::size_t>(i)]) continue;
    if (first < 0) first = i;
    const double value = tensor.at(i), own = tensor.at(first);
    if (value != own && !(std::isnan(value) && std::isnan(own))) return false;
  }
  return true;
}

bool is_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.at(i) != 0.0) return false;
  }
  return true;
}

}  // namespace

bool keeps_to_contract(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const bool any = std::ranges::find(valid, true) != valid.end();
  if (any && !allows_empty_rows(signature, c.spec) &&
      has_empty_sequence(valid, c.shape[Axis::sequences])) {
    return false;
  }
  for (const auto& [axis, extent] : signature.pinned) {
    if (c.shape[axis] != extent) return false;
  }
  for (const auto& [axis, extent] : signature.longest) {
    if (c.shape[axis] > extent) return false;
  }
  if (signature.prefix_mask && !valid_come_first(signature, c)) return false;
  if (!lists_are_distinct(signature, c) || !numbers_are_small(signature, c)) return false;
  for (const Field& field : signature.fields) {
    const Tensor& tensor = c.batch.at(field.name);
    if (field.absent && !is_zero(tensor)) return false;
    if (field.even_groups && !are_even_groups(tensor)) return false;
    const bool any_float = field.dtypes.empty();
    if (!any_float && std::ranges::count(field.dtypes, tensor.dtype) == 0) return false;
    if (!is_float(tensor.dtype) || !is_positional(field) || valid.empty()) continue;
    const Infinity infinity = infinity_of(field, c.spec);
    const std::int64_t each = tensor.size() / static_cast<std::int64_t>(valid.size());
    if (field.one_per_sequence && each == 1 &&
        !one_per_sequence(tensor, valid, c.shape[Axis::tokens])) {
      return false;
    }
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.at(i);
      if (valid[static_cast<std::size_t>(i / each)]) {
        if (infinity != Infinity::legal && !std::isfinite(value)) return false;
      } else if (!field.one_per_sequence && !keeps_to(field.masked, field.quantity, value)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace lossgate
