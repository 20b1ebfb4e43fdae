// SPDX-License-Identifier: Apache-2.0
#include "corpora/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <set>

#include "corpora/case_check.h"
#include "corpora/dump.h"
#include "corpora/safetensors_header.h"
#include "corpora/utf8.h"

namespace lossgate::corpora {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data are little-endian");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit

template <class Pairs>
auto* find_second(const Pairs& pairs, std::string_view key) {
  const auto at = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == key; });
  return at == pairs.end() ? nullptr : &at->second;
}

std::string_view header_of(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < kLengthBytes) {
    throw FormatError(file, 0, "header length",
                      "expected eight bytes, found " + std::to_string(bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t most = std::min<std::uint64_t>(bytes.size() - kLengthBytes, kMaxHeader);
  if (length == 0 || length > most) {
    throw FormatError(
        file, 0, "header length",
        "expected 1 to " + std::to_string(most) + " bytes, found " + std::to_string(length));
  }
  const char* const start = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  if (*start != '{') throw FormatError(file, 0, "header", "expected it to start with '{'");
  return {start, static_cast<std::size_t>(length)};
}

/// The ranges must be those of the shapes and, put in order, cover the data exactly.
void check_ranges(const std::vector<TensorEntry>& tensors, std::uint64_t size,
                  std::string_view file) {
  std::vector<const TensorEntry*> in_order;
  for (const TensorEntry& tensor : tensors) {
    const auto fail = [&](const std::string& expected) {
      throw FormatError(file, 0, "tensor " + in_quotes(tensor.name), expected);
    };
    if (tensor.begin > tensor.end || tensor.end > size) {
      fail("expected data_offsets within the " + std::to_string(size) + " bytes of data, found " +
           std::to_string(tensor.begin) + " to " + std::to_string(tensor.end));
    }
    const std::optional<std::int64_t> count = checked_count(tensor.extents);
    const std::uint64_t width = size_of(tensor.dtype);
    const std::uint64_t length = tensor.end - tensor.begin;
    if (!count || length % width != 0 || length / width != static_cast<std::uint64_t>(*count)) {
      fail("expected data_offsets as far apart as shape and dtype say, found " +
           std::to_string(length) + " bytes");
    }
    in_order.push_back(&tensor);
  }
  std::ranges::sort(in_order, {}, [](const TensorEntry* t) { return std::pair(t->begin, t->end); });
  std::uint64_t covered = 0;
  for (const TensorEntry* tensor : in_order) {
    if (tensor->begin != covered) {
      throw FormatError(file, 0, "tensor " + in_quotes(tensor->name),
                        "expected its data to start at byte " + std::to_string(covered) +
                            ", without hole or overlap, found " + std::to_string(tensor->begin));
    }
    covered = tensor->end;
  }
  if (covered != size) {
    throw FormatError(
        file, 0, "data",
        "expected " + std::to_string(covered) + " bytes, found " + std::to_string(size));
  }
}

void check_writable(const TensorFile& file) {
  std::set<std::string_view> names = {"__metadata__"}, keys;
  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<std::int64_t> count = checked_count(tensor.extents);
    const auto width = static_cast<std::int64_t>(size_of(tensor.dtype));
    if (!is_utf8(name) || !names.insert(name).second) {
      throw FormatError("tensors", 0, in_quotes(name), "expected names in UTF-8, each only once");
    }
    const auto size = static_cast<std::int64_t>(tensor.bytes.size());
    if (!count || size % width != 0 || size / width != *count) {
      throw FormatError("tensors", 0, in_quotes(name), "expected as many bytes as the shape says");
    }
  }
  for (const auto& [key, value] : file.metadata) {
    if (!is_utf8(key) || !is_utf8(value) || !keys.insert(key).second) {
      throw FormatError("tensors", 0, in_quotes(key),
                        "expected metadata in UTF-8, each key only once");
    }
  }
}

/// What watch kept, of a loss that is known, without what was observed.
TensorFile as_case_file(Dump dump, std::string_view name, const Lookup& lookup) {
  const LossSignature* signature = lookup(dump.loss);
  if (signature) return case_file_of(std::move(dump), *signature, name);
  throw FormatError(name, 0, "loss",
                    dump.loss.empty()
                        ? "expected the id of a loss, found none: watch(loss=...) was not told of "
                          "any, so there is no formula to compare with; lossgate explain needs none"
                        : "expected the id of a known loss, found " + in_quotes(dump.loss));
}

/// Extents of the axes as the tensors have them; fields that disagree are told apart later.
Shape shape_of(const TensorFile& file, const LossSignature& signature, std::string_view name) {
  Shape shape;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = file.find_tensor(field.name);
    if (!tensor)
      throw FormatError(name, 0, "tensor " + field.name, "expected this tensor, found none");
    if (tensor->extents.size() != field.axes.size()) {
      throw FormatError(name, 0, "tensor " + field.name,
                        "expected " + std::to_string(field.axes.size()) + " axes, found " +
                            std::to_string(tensor->extents.size()));
    }
    for (std::size_t i = 0; i < field.axes.size(); ++i) {
      if (tensor->extents[i] > kMaxExtent) {
        throw FormatError(name, 0, "tensor " + field.name,
                          "expected extents up to " + std::to_string(kMaxExtent) + ", found " +
                              std::to_string(tensor->extents[i]));
      }
      if (shape[field.axes[i]] == -1) shape[field.axes[i]] = tensor->extents[i];
    }
  }
  return shape;
}

}  // namespace

const Tensor* TensorFile::find_tensor(std::string_view name) const {
  return find_second(tensors, name);
}

const std::string* TensorFile::find_metadata(std::string_view key) const {
  return find_second(metadata, key);
}

TensorFile read_tensors(std::span<const std::byte> bytes, std::string_view file_name) {
  const std::string_view json = header_of(bytes, file_name);
  TensorHeader header = read_tensor_header(json, file_name);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + json.size());
  check_ranges(header.tensors, data.size(), file_name);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (TensorEntry& entry : header.tensors) {
    const auto stored = data.subspan(entry.begin, entry.end - entry.begin);
    file.tensors.emplace_back(std::move(entry.name),
                              Tensor{entry.dtype, std::move(entry.extents),
                                     std::vector<std::byte>(stored.begin(), stored.end())});
  }
  return file;
}

std::vector<std::byte> write_tensors(const TensorFile& file) {
  check_writable(file);
  TensorHeader header{.tensors = {}, .metadata = file.metadata};
  for (const auto& [name, tensor] : file.tensors) {
    header.tensors.push_back({name, tensor.dtype, tensor.extents, 0, 0});
  }
  std::vector<std::size_t> order(file.tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::pair(-static_cast<int>(size_of(header.tensors[i].dtype)), i);
  });
  std::uint64_t size = 0;
  for (std::size_t i : order) {
    header.tensors[i].begin = size;
    header.tensors[i].end = size += file.tensors[i].second.bytes.size();
  }
  std::string json = write_tensor_header(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> bytes(kLengthBytes + json.size() + size);
  const std::uint64_t length = json.size();
  std::memcpy(bytes.data(), &length, kLengthBytes);
  std::memcpy(bytes.data() + kLengthBytes, json.data(), json.size());
  auto data = bytes.begin() + static_cast<std::ptrdiff_t>(kLengthBytes + json.size());
  for (std::size_t i : order) data = std::ranges::copy(file.tensors[i].second.bytes, data).out;
  return bytes;
}

Case decode_safetensors(std::span<const std::byte> bytes, std::string_view file_name,
                        const Lookup& lookup) {
  TensorFile file = read_tensors(bytes, file_name);
  if (is_dump(file)) file = as_case_file(dump_of(std::move(file), file_name), file_name, lookup);
  std::vector<Entry> entries;
  for (const auto& [key, value] : file.metadata) {
    if (key != "format") entries.push_back({key, value, 0});
  }
  const Header header(file_name, std::move(entries));
  if (const Entry* version = header.find("lossgate-case"); version && version->value != "1") {
    header.fail("lossgate-case", "expected 1, found " + in_quotes(version->value));
  }
  const LossSignature& signature = read_loss(header, lookup);
  Case c;
  read_description(header, signature, Missing::standard, shape_of(file, signature, file_name), c);
  c.batch.fields = std::move(file.tensors);
  check_fields(c, signature, file_name);
  const auto place = [&](const auto& pair) { return signature.find_field(pair.first); };
  std::ranges::sort(c.batch.fields, {}, place);
  return c;
}

std::vector<std::byte> encode_safetensors(const Case& c) {
  return write_tensors({.tensors = c.batch.fields, .metadata = describe(c)});
}

}  // namespace lossgate::corpora
