// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/format_error.h"
#include "corpora/header.h"
#include "reference/spec/case.h"
#include "reference/spec/tensor.h"

namespace lossgate::corpora {

/// What one safetensors file or frame holds: tensors by name and free text by key, both in order.
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;

  const Tensor* find_tensor(std::string_view name) const;
  const std::string* find_metadata(std::string_view key) const;
  bool operator==(const TensorFile&) const = default;
};

/// Reads the safetensors framing: eight bytes with the length of a JSON header, the header, the
/// tensors' bytes without holes or overlaps. Tensors and metadata keep the header's order. Throws
/// FormatError; nothing is allocated whose size the bytes only claim.
TensorFile read_tensors(std::span<const std::byte> bytes, std::string_view file_name);

/// The inverse. The header has the list's order; the data lie by element size, widest first, so
/// that every tensor is aligned for readers that map the file. Throws FormatError where a name
/// occurs twice, a text is not UTF-8 or a tensor's bytes are not those of its shape.
std::vector<std::byte> write_tensors(const TensorFile& file);

/// A case from tensors that are named as the signature's fields, with the spec in the metadata.
/// What a dump may leave out: see Missing::standard; the metadata key `format` is ignored.
Case decode_safetensors(std::span<const std::byte> bytes, std::string_view file_name,
                        const Lookup& lookup);

/// Writes all metadata and all fields of the case, in its own order.
std::vector<std::byte> encode_safetensors(const Case& c);

}  // namespace lossgate::corpora
