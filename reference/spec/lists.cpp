// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/lists.h"

#include <algorithm>
#include <set>
#include <vector>

namespace lossgate {
namespace {

/// Calls look(list, first, count) at each position that counts, of each field that says so, until
/// one call returns false.
template <class Batch, class Look>
bool for_each_list(const LossSignature& signature, const std::vector<bool>& valid, Batch& batch,
                   Look look) {
  for (const Field& field : signature.fields) {
    if (!field.distinct || !is_positional(field)) continue;
    auto& list = batch.at(field.name);
    const std::int64_t count = list.extents.back();
    for (std::int64_t first = 0; first < list.size(); first += count) {
      const bool counts = valid[static_cast<std::size_t>(first / count)];
      if (counts && !look(list, first, count)) return false;
    }
  }
  return true;
}

bool any_distinct(const LossSignature& signature) {
  return std::ranges::any_of(signature.fields, &Field::distinct);
}

}  // namespace

bool is_list(const Field& field) {
  return field.quantity == Quantity::label && !field.axes.empty() &&
         field.axes.back() == Axis::support;
}

bool has_room_for_lists(const LossSignature& signature, const Shape& shape) {
  return !any_distinct(signature) || shape[Axis::vocab] < 0 ||
         shape[Axis::support] <= shape[Axis::vocab];
}

bool lists_are_distinct(const LossSignature& signature, const Case& c) {
  if (!any_distinct(signature)) return true;
  return for_each_list(signature, valid_positions(signature, c), c.batch,
                       [](const Tensor& list, std::int64_t first, std::int64_t count) {
                         std::set<std::int64_t> tokens;
                         for (std::int64_t k = 0; k < count; ++k) {
                           tokens.insert(list.integer_at(first + k));
                         }
                         return static_cast<std::int64_t>(tokens.size()) == count;
                       });
}

void make_lists_distinct(const LossSignature& signature, Case& c) {
  const std::int64_t vocab = c.shape[Axis::vocab];
  if (!any_distinct(signature) || !has_room_for_lists(signature, c.shape)) return;
  for_each_list(signature, valid_positions(signature, c), c.batch,
                [&](Tensor& list, std::int64_t first, std::int64_t count) {
                  std::set<std::int64_t> tokens;
                  for (std::int64_t k = first; k < first + count; ++k) {
                    std::int64_t token = list.integer_at(k);
                    while (!tokens.insert(token).second) {
                      token = vocab > 0 ? (token + 1) % vocab : token + 1;
                    }
                    list.set(k, static_cast<double>(token));
                  }
                  return true;
                });
}

}  // namespace lossgate
