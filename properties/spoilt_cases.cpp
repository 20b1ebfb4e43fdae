// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "properties/case_facts.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

using Index = std::int64_t;

/// Poisons one entry of one field at a valid position: any field, any position, as the case's own
/// bits decide.
std::optional<Transformed> nan_at_valid(const LossSignature& signature, const Case& whole,
                                        const Case&) {
  std::vector<const Field*> fields;
  for (const Field& field : signature.fields) {
    if (is_positional(field) && is_float(whole.batch.at(field.name).dtype)) {
      fields.push_back(&field);
    }
  }
  const std::vector<bool> valid = valid_positions(signature, whole);
  std::vector<Index> positions;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) positions.push_back(static_cast<Index>(i));
  }
  if (fields.empty() || positions.empty()) return std::nullopt;
  const std::uint64_t pick = fingerprint_of(whole);
  const Field& field = *fields[pick % fields.size()];
  const Index position = positions[(pick >> 8) % positions.size()];
  Transformed result{.c = whole};
  Tensor& tensor = result.c.batch.at(field.name);
  const Index each = entries_per_position(whole, tensor);
  const Index at =
      position * each +
      static_cast<Index>((pick >> 24) % static_cast<std::uint64_t>(std::max<Index>(each, 1)));
  const bool infinite = field.infinity != Infinity::legal && (pick >> 40) % 3 == 0;
  tensor.set(at, infinite ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN());
  return result;
}

/// Each candidate makes the case invalid in one way; false where it does not apply.
using Spoil = bool (*)(const LossSignature&, Case&);

bool spoil_mask(const LossSignature& signature, Case& c) {
  if (signature.mask.empty() || c.batch.at(signature.mask).size() == 0) return false;
  Tensor& mask = c.batch.at(signature.mask);
  if (mask.dtype == Dtype::boolean) return false;
  mask.set(mask.size() - 1, 2.0);
  return true;
}

bool spoil_reduction(const LossSignature& signature, Case& c) {
  for (Reduction reduction : kAllReductions) {
    if (std::ranges::find(signature.reductions, reduction) == signature.reductions.end()) {
      c.spec.reduction = reduction;
      return !signature.reductions.empty();
    }
  }
  return false;
}

bool spoil_label(const LossSignature& signature, Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const auto first = std::ranges::find(valid, true);
  if (first == valid.end()) return false;
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::label || field.axes.size() != 2) continue;
    c.batch.at(field.name).set(first - valid.begin(), static_cast<double>(c.shape[Axis::vocab]));
    return true;
  }
  return false;
}

bool spoil_extent(const LossSignature& signature, Case& c) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (field.role == Role::differentiable || !is_positional(field) || tensor.extents[1] < 2) {
      continue;
    }
    --tensor.extents[1];
    tensor.bytes.resize(static_cast<std::size_t>(element_count(tensor.extents)) *
                        size_of(tensor.dtype));
    return true;
  }
  return false;
}

bool spoil_option(const LossSignature& signature, Case& c) {
  for (const Option& option : signature.options) {
    if (option.kind == Option::Kind::choice || option.kind == Option::Kind::flag) continue;
    c.spec.set(option.name, option.low - 1.0);
    return true;
  }
  return false;
}

std::optional<Transformed> invalid(const LossSignature& signature, const Case& whole, const Case&) {
  static constexpr std::array<Spoil, 5> kSpoilers = {spoil_mask, spoil_reduction, spoil_label,
                                                     spoil_extent, spoil_option};
  const std::size_t first = fingerprint_of(whole) % kSpoilers.size();
  for (std::size_t i = 0; i < kSpoilers.size(); ++i) {
    Transformed result{.c = whole};
    if (kSpoilers[(first + i) % kSpoilers.size()](signature, result.c)) return result;
  }
  return std::nullopt;
}

}  // namespace

const Transform kNanAtValid{"nan_at_valid", nan_at_valid};
const Transform kInvalid{"invalid", invalid};

}  // namespace lossgate::properties
