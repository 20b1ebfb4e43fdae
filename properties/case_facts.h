// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/spec/case.h"

/// What transforms ask of a case.
namespace lossgate::properties {

/// A number that depends on the case and on nothing else: choices made with it vary from case to
/// case and never from run to run (FNV-1a over the stored bits).
inline std::uint64_t fingerprint_of(const Case& c) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& [name, tensor] : c.batch.fields) {
    for (std::byte byte : tensor.bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
  return hash ^ (hash >> 29);
}

inline bool has_positions(const LossSignature& signature) {
  return !signature.mask.empty() || !signature.ignore_label.empty();
}

/// Entries per position of a positional field.
inline std::int64_t entries_per_position(const Case& c, const Tensor& tensor) {
  const std::int64_t positions = c.shape[Axis::sequences] * c.shape[Axis::tokens];
  return positions > 0 ? tensor.size() / positions : 0;
}

}  // namespace lossgate::properties
