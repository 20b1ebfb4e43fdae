// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/spec/case.h"

/// Numbers that count, for transforms that give a case others.
namespace lossgate::properties {

/// Gives a field that has one number for each position others where they count: `change` is told
/// which position, and the number there. What is masked stays.
template <class Change>
void change_where_valid(const LossSignature& signature, Case& c, const std::string& field,
                        Change&& change) {
  const std::vector<bool> valid = valid_positions(signature, c);
  Tensor& tensor = c.batch.at(field);
  for (std::int64_t i = 0; i < std::min(tensor.size(), std::ssize(valid)); ++i) {
    if (valid[static_cast<std::size_t>(i)]) tensor.set(i, change(i, tensor.at(i)));
  }
}

}  // namespace lossgate::properties
