// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reference/spec/case.h"
#include "reference/spec/fnv1a.h"

/// What transforms ask of a case.
namespace lossgate::properties {

/// A number that depends on the case's stored bits and on nothing else: choices made with it vary
/// from case to case and never from run to run.
inline std::uint64_t fingerprint_of(const Case& c) {
  Fnv1a bits;
  for (const auto& [name, tensor] : c.batch.fields) {
    for (std::byte byte : tensor.bytes) bits.add(static_cast<std::uint8_t>(byte));
  }
  const std::uint64_t hash = bits.value();
  return hash ^ (hash >> 29);
}

inline bool has_finite_inputs(const Case& c) {
  return std::ranges::all_of(c.batch.fields,
                             [](const auto& field) { return field.second.all_finite(); });
}

inline bool has_positions(const LossSignature& signature) {
  return !signature.mask.empty() || !signature.ignore_label.empty();
}

/// The option by which the reduction divides, which no other reads; empty where it has none.
inline std::string_view divisor_option(Reduction reduction) {
  if (reduction == Reduction::sum_over_items) return "num_items";
  return reduction == Reduction::seq_mean_token_sum_norm ? "max_length" : "";
}

/// The first field of the quantity; null where there is none.
inline const Field* field_of(const LossSignature& signature, Quantity quantity) {
  const auto field = std::ranges::find(signature.fields, quantity, &Field::quantity);
  return field == signature.fields.end() ? nullptr : &*field;
}

/// Entries per position of a positional field.
inline std::int64_t entries_per_position(const Case& c, const Tensor& tensor) {
  const std::int64_t positions = c.shape[Axis::sequences] * c.shape[Axis::tokens];
  return positions > 0 ? tensor.size() / positions : 0;
}

}  // namespace lossgate::properties
