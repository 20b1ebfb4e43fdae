// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "reference/spec/case.h"

namespace lossgate::fuzz {

/// A field of the case that is being drawn. Fields that measure the same quantity on the same axes
/// are drawn together, since what matters is how they relate.
struct Column {
  const Field* field;
  Tensor* tensor;
  bool twin = false;  ///< its on-policy partner is the first column
};

using Columns = std::span<Column>;

/// The most fields that are drawn in relation to one first field.
inline constexpr std::size_t kMostColumns = 12;

inline void copy_values(const Column& from, const Column& to) {
  to.tensor->bytes = from.tensor->bytes;
}

}  // namespace lossgate::fuzz
