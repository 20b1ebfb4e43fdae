// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "fuzz/profile.h"
#include "reference/spec/case.h"

namespace lossgate::fuzz {

/// A field of the case that is being drawn. Fields that measure the same quantity on the same axes
/// are drawn together, since what matters is how they relate.
struct Column {
  const Field* field;
  Tensor* tensor;
  bool twin = false;                         ///< its on-policy partner is the first column
  std::span<const std::uint8_t> valid = {};  ///< 1 for each position that counts; all where empty
  const LossSpec* spec = nullptr;            ///< the options of the case, where it has any
  int partner = -1;  ///< the column of which it has what a constant policy gives the same answers

  /// Whether an entry that counts may be -infinity.
  bool may_be_infinite() const {
    return (spec ? infinity_of(*field, *spec) : field->infinity) == Infinity::legal;
  }

  /// Whether one of those entries belongs to a position that counts.
  bool counts(std::int64_t first, std::int64_t run) const {
    const auto positions = static_cast<std::int64_t>(valid.size()), size = tensor->size();
    if (positions == 0 || size == 0) return true;
    const auto begin = valid.begin() + first * positions / size;
    const auto end = valid.begin() + ((first + run) * positions + size - 1) / size;
    return std::find(begin, end, std::uint8_t{1}) != end;
  }
};

using Columns = std::span<Column>;

/// The most fields that are drawn in relation to one first field.
inline constexpr std::size_t kMostColumns = 12;

/// Finds their twins and partners.
inline void relate(const LossSignature& signature, Columns columns) {
  const auto is_twin = [&](const std::string& a, const std::string& b) {
    return std::ranges::any_of(signature.on_policy, [&](const auto& pair) {
      return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
    });
  };
  const auto is_policy_of = [&](const Field& a, const Field& b) {
    const bool answers = a.quantity == Quantity::log_prob && !contains(a.axes, Axis::tokens);
    return answers && a.role == Role::constant && b.role == Role::differentiable &&
           std::ranges::any_of(signature.reach, [&](const ReachAxis& axis) {
             return axis.field == a.name && axis.towards == b.name;
           });
  };
  for (std::size_t k = 1; k < columns.size(); ++k) {
    columns[k].twin = is_twin(columns[k].field->name, columns[0].field->name);
    for (std::size_t j = 0; j < k; ++j) {
      if (!is_policy_of(*columns[k].field, *columns[j].field)) continue;
      columns[k].partner = static_cast<int>(j);
    }
  }
}

/// How many entries in a row are of one kind, of a field on sequences and what each has.
inline std::int64_t run_of(Spread spread, const Tensor& tensor) {
  if (spread == Spread::positions) return 1;
  if (spread == Spread::whole || tensor.extents.empty()) return tensor.size();
  return tensor.size() / tensor.extents.front();
}

/// Far from what is usual: as far as a trainer's numbers go, or anywhere beyond up to what a sum of
/// a thousand still holds, where a bound or a branch that nobody declared may lie.
inline double draw_large(Dtype dtype, Choices& choices) {
  constexpr double kUsual = 3e4;
  const double size = choices.sometimes(0.5)
                          ? choices.log_uniform(kUsual, std::max(kUsual, max_finite(dtype) / 1024))
                          : choices.log_uniform(100.0, kUsual);
  return choices.either_sign(size);
}

/// Beyond 2^13, where no exponential is a number: mostly near the largest of the format.
inline double draw_huge(Dtype dtype, Choices& choices) {
  const double most = max_finite(dtype) / 4, few = most * 0x1p-12;
  const double size = choices.sometimes(0.25) ? choices.log_uniform(std::min(0x1p13, few), few)
                                              : choices.log_uniform(few, most);
  return choices.either_sign(size);
}

inline double roundoff_of(const Column& column) { return unit_roundoff(column.tensor->dtype); }

/// Those with the most digits, and with the fewest.
inline Dtype finest_dtype(Columns columns) {
  return std::ranges::min_element(columns, {}, roundoff_of)->tensor->dtype;
}
inline Dtype coarsest_dtype(Columns columns) {
  return std::ranges::max_element(columns, {}, roundoff_of)->tensor->dtype;
}

/// As far as the other format reaches.
inline void copy_values(const Column& from, const Column& to) {
  if (from.tensor->dtype == to.tensor->dtype) {
    to.tensor->bytes = from.tensor->bytes;
    return;
  }
  const double most = max_finite(to.tensor->dtype);
  for (std::int64_t i = 0; i < to.tensor->size(); ++i) {
    const double value = from.tensor->at(i);
    to.tensor->set(i, std::isfinite(value) ? std::clamp(value, -most, most) : value);
  }
}

}  // namespace lossgate::fuzz
