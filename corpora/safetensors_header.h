// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/spec/dtype.h"
#include "reference/spec/tensor.h"

namespace lossgate::corpora {

/// What the header says of one tensor: `begin` and `end` count from the end of the header.
struct TensorEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Extents extents;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct TensorHeader {
  std::vector<TensorEntry> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Reads the JSON, in order, refusing whatever is not exactly the format: names that occur twice,
/// unknown or missing keys, numbers that are no counts, anything nested deeper. Whether the ranges
/// fit the data is not its business. Throws FormatError.
TensorHeader read_tensor_header(std::string_view json, std::string_view file);

/// The inverse, without padding.
std::string write_tensor_header(const TensorHeader& header);

}  // namespace lossgate::corpora
