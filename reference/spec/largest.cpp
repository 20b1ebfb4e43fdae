// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/largest.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lossgate {
namespace {

bool is_limited(const Field& field) { return std::isfinite(field.largest); }

/// How many entries belong to one position; 0 where the field has none.
std::int64_t entries_of_position(const Field& field, const Case& c, const Tensor& tensor,
                                 const std::vector<bool>& valid) {
  const bool rows_count = c.shape[Axis::tokens] < 0 && has_rows(field.axes);
  if (valid.empty() || !(is_positional(field) || rows_count)) return 0;
  return tensor.size() / static_cast<std::int64_t>(valid.size());
}

/// Calls look(tensor, index, limit) for each number that is too large, until one returns false.
template <class AnyCase, class Look>
bool for_each_large(const LossSignature& signature, AnyCase& c, Look look) {
  if (std::ranges::none_of(signature.fields, is_limited)) return true;
  const std::vector<bool> valid = valid_positions(signature, c);
  for (const Field& field : signature.fields) {
    auto& tensor = c.batch.at(field.name);
    if (!is_limited(field) || !is_float(tensor.dtype)) continue;
    const double most = max_finite(tensor.dtype);
    const double limit = std::min(round_to(tensor.dtype, field.largest), most);
    const std::int64_t each = entries_of_position(field, c, tensor, valid);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (each > 0 && !valid[static_cast<std::size_t>(i / each)]) continue;
      const double size = std::fabs(tensor.at(i));
      if (size > limit && std::isfinite(size) && !look(tensor, i, limit)) return false;
    }
  }
  return true;
}

}  // namespace

bool numbers_are_small(const LossSignature& signature, const Case& c) {
  return for_each_large(signature, c, [](const Tensor&, std::int64_t, double) { return false; });
}

void make_numbers_small(const LossSignature& signature, Case& c) {
  for_each_large(signature, c, [](Tensor& tensor, std::int64_t i, double limit) {
    tensor.set(i, std::copysign(limit, tensor.at(i)));
    return true;
  });
}

}  // namespace lossgate
