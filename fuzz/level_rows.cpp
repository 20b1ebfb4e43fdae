// SPDX-License-Identifier: Apache-2.0
#include "fuzz/level_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/spec/even_parts.h"
#include "reference/spec/groups.h"
#include "reference/spec/largest.h"
#include "reference/spec/lists.h"
#include "reference/spec/padding.h"

namespace lossgate::fuzz {

void level_rows(const LossSignature& signature, std::span<const std::uint8_t> valid, Case& c) {
  const std::int64_t sequences = c.shape[Axis::sequences], tokens = c.shape[Axis::tokens];
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (field.even_groups) make_groups_even(tensor);
    if (!field.one_per_sequence || !is_positional(field) || tensor.size() == 0) continue;
    for (std::int64_t row = 0; row < sequences; ++row) {
      const auto first = valid.begin() + row * tokens;
      const auto counts = std::find(first, first + tokens, std::uint8_t{1});
      const auto from = counts == first + tokens ? first : counts;
      const double value = tensor.at(from - valid.begin());
      for (std::int64_t t = 0; t < tokens; ++t) tensor.set(row * tokens + t, value);
    }
  }
  make_lists_distinct(signature, c);
  make_numbers_small(signature, c);
  move_valid_first(signature, c);
}

void level_rows(const LossSignature& signature, Case& c) {
  const auto is_leveled = [](const Field& f) {
    return f.one_per_sequence || f.even_groups || f.distinct || std::isfinite(f.largest);
  };
  if (signature.prefix_mask || std::ranges::any_of(signature.fields, is_leveled)) {
    const std::vector<bool> positions = valid_positions(signature, c);
    const std::vector<std::uint8_t> valid(positions.begin(), positions.end());
    level_rows(signature, valid, c);
  }
  make_parts_even(signature, c);  // which, too, follows from what counts
}

}  // namespace lossgate::fuzz
