// SPDX-License-Identifier: Apache-2.0
#include "ci/dump_variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ci/judgement.h"

namespace lossgate::ci {
namespace {

using corpora::Dump;

/// Elements at each position; 0 where the tensor has no positions.
std::int64_t elements_each(const Tensor& tensor, const std::vector<std::int64_t>& shape) {
  const bool positional = shape.size() == 2 && tensor.extents.size() >= 2 &&
                          std::equal(shape.begin(), shape.end(), tensor.extents.begin());
  const std::int64_t positions = positional ? shape[0] * shape[1] : 0;
  return positions > 0 ? tensor.size() / positions : 0;
}

bool is_mask(const std::string& name, const Tensor& tensor) {
  const bool named =
      name.find("mask") != std::string::npos || name.find("valid") != std::string::npos;
  if (!named && tensor.dtype != Dtype::boolean) return false;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.at(i) != 0.0 && tensor.at(i) != 1.0) return false;
  }
  return true;
}

bool ignores_labels(const Tensor& tensor) {
  if (tensor.dtype != Dtype::i64 && tensor.dtype != Dtype::i32) return false;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.integer_at(i) == kIgnoreLabel) return true;
  }
  return false;
}

/// Calls f(tensor, begin, end) for each position of each floating-point field.
template <class F>
void at_positions(Dump& dump, F&& f) {
  const auto shape = positions_of(dump);
  for (auto& [name, tensor] : dump.fields) {
    const std::int64_t each = elements_each(tensor, shape);
    if (each == 0) continue;
    for (std::int64_t p = 0; p < tensor.size() / each; ++p) f(tensor, p, p * each, (p + 1) * each);
  }
}

}  // namespace

std::vector<std::int64_t> positions_of(const Dump& dump) {
  for (const std::string& name : dump.differentiable) {
    const Tensor* tensor = dump.find_field(name);
    if (tensor && tensor->extents.size() >= 2) return {tensor->extents[0], tensor->extents[1]};
  }
  return {};
}

std::optional<std::vector<bool>> counted_positions(const Dump& dump) {
  const auto shape = positions_of(dump);
  std::optional<std::vector<bool>> counted;
  const auto add = [&](const Tensor& tensor, auto&& counts) {
    if (!counted) counted.emplace(static_cast<std::size_t>(tensor.size()), true);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (!counts(i)) (*counted)[static_cast<std::size_t>(i)] = false;
    }
  };
  for (const auto& [name, tensor] : dump.fields) {
    if (elements_each(tensor, shape) != 1) continue;
    if (is_mask(name, tensor)) {
      add(tensor, [&](std::int64_t i) { return tensor.at(i) != 0.0; });
    } else if (ignores_labels(tensor)) {
      add(tensor, [&](std::int64_t i) { return tensor.integer_at(i) != kIgnoreLabel; });
    }
  }
  return counted;
}

std::optional<Dump> masked_zeroed(const Dump& dump, const Counted& counted) {
  const auto whole = [](const std::vector<bool>& all) {
    return std::ranges::find(all, false) == all.end();
  };
  if (whole(counted.of_numbers) && whole(counted.of_rows)) return std::nullopt;
  Dump other = dump;
  at_positions(other, [&](Tensor& tensor, std::int64_t p, std::int64_t begin, std::int64_t end) {
    if (counted.of(tensor)[static_cast<std::size_t>(p)] || !is_float(tensor.dtype)) return;
    for (std::int64_t i = begin; i < end; ++i) tensor.set(i, 0.0);
  });
  return other;
}

std::optional<Dump> rows_counted(const Dump& dump, const std::vector<bool>& counted) {
  const auto shape = positions_of(dump);
  if (shape.size() != 2 || shape[1] == 0) return std::nullopt;
  Dump other = dump;
  bool any = false;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const auto begin = counted.begin() + row * shape[1];
    if (std::find(begin, begin + shape[1], true) != begin + shape[1]) continue;
    any = true;
    for (auto& [name, tensor] : other.fields) {
      if (elements_each(tensor, shape) != 1) continue;
      const std::int64_t first = row * shape[1];
      if (is_mask(name, tensor)) tensor.set(first, 1.0);
      if (ignores_labels(tensor)) tensor.set(first, 0.0);
    }
  }
  return any ? std::optional(std::move(other)) : std::nullopt;
}

std::optional<BadInput> bad_input(const Dump& dump, const std::optional<Counted>& counted) {
  const auto shape = positions_of(dump);
  std::optional<BadInput> bad;
  Dump repaired = dump;
  for (auto& [name, tensor] : repaired.fields) {
    if (!is_float(tensor.dtype)) continue;
    const std::int64_t each = elements_each(tensor, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.at(i);
      if (std::isfinite(value)) continue;
      if (counted && each > 0 && !counted->of(tensor)[static_cast<std::size_t>(i / each)]) continue;
      if (!bad || (bad->may_be_meant && std::isnan(value))) {
        const bool row = each > 1 && std::isinf(value) && value < 0;
        bad = BadInput{.field = name,
                       .index = i,
                       .value = std::isnan(value) ? "nan" : fmt::format("{}", value),
                       .may_be_meant = row,
                       .repaired = {}};
      }
      tensor.set(i, 0.0);
    }
  }
  if (bad) bad->repaired = std::move(repaired);
  return bad;
}

std::vector<std::int64_t> coordinates(const Extents& extents, std::int64_t index) {
  std::vector<std::int64_t> at(extents.size());
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    at[axis] = index % extents[axis];
    index /= extents[axis];
  }
  return at;
}

std::string coordinates_text(const Dump& dump, std::vector<std::int64_t> at) {
  const auto in_batch = [](const std::vector<std::int64_t>& kept, std::int64_t& place) {
    const auto index = static_cast<std::size_t>(place);
    if (index < kept.size()) place = kept[index];
  };
  if (!at.empty()) in_batch(dump.rows, at[0]);
  if (at.size() > 1) in_batch(dump.tokens, at[1]);
  return fmt::format("[{}]", fmt::join(at, ", "));
}

std::string place_text(const Dump& dump, const std::string& field, std::int64_t index) {
  const Tensor& tensor = *dump.find_field(field);
  return field + coordinates_text(dump, coordinates(tensor.extents, index));
}

}  // namespace lossgate::ci
