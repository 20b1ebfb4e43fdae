// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/padding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace lossgate {
namespace {

using Index = std::int64_t;

bool come_first(const std::vector<bool>& valid, Index tokens) {
  for (auto row = valid.begin(); row != valid.end(); row += tokens) {
    if (!std::is_partitioned(row, row + tokens, [](bool counts) { return counts; })) return false;
  }
  return true;
}

/// Which position each one is filled from.
std::vector<Index> order_of(const std::vector<bool>& valid, Index tokens) {
  std::vector<Index> from(valid.size());
  std::iota(from.begin(), from.end(), Index{0});
  const auto place = [&](Index i) { return std::pair(!valid[static_cast<std::size_t>(i)], i); };
  for (auto row = from.begin(); row != from.end(); row += tokens) {
    std::ranges::sort(row, row + tokens, {}, place);
  }
  return from;
}

}  // namespace

bool valid_come_first(const LossSignature& signature, const Case& c) {
  return come_first(valid_positions(signature, c), c.shape.positions());
}

void move_valid_first(const LossSignature& signature, Case& c) {
  if (!signature.prefix_mask) return;
  const std::vector<bool> valid = valid_positions(signature, c);
  const Index tokens = c.shape.positions();
  if (come_first(valid, tokens)) return;
  const std::vector<Index> from = order_of(valid, tokens);
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_positional(field) || tensor.size() == 0) continue;
    const Tensor before = tensor;
    const Index each = tensor.size() / std::ssize(from);
    const std::size_t bytes = static_cast<std::size_t>(each) * size_of(tensor.dtype);
    for (Index i = 0; i < std::ssize(from); ++i) {
      std::memcpy(tensor.element(i * each),
                  before.element(from[static_cast<std::size_t>(i)] * each), bytes);
    }
  }
}

}  // namespace lossgate
