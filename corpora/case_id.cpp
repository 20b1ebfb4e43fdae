// SPDX-License-Identifier: Apache-2.0
#include "corpora/case_id.h"

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "reference/spec/fnv1a.h"

namespace lossgate::corpora {
namespace {

/// A hash over bytes. Every item goes in with its length before it, so that no
/// two lists of items run together.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    add(bytes.size());
    for (std::byte byte : bytes) bytes_.add(static_cast<std::uint8_t>(byte));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(std::uint64_t word) {
    for (int i = 0; i < 8; ++i) bytes_.add(static_cast<std::uint8_t>(word >> (8 * i)));
  }
  void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }

  std::uint64_t value() const { return bytes_.value(); }

 private:
  Fnv1a bytes_;
};

void add_spec(Hash& hash, const LossSpec& spec) {
  hash.add(std::string_view(spec.loss));
  hash.add(name(spec.reduction));
  hash.add(spec.options.size());
  for (const auto& [option, value] : spec.options) {
    hash.add(std::string_view(option));
    hash.add(value.index());
    if (const auto* number = std::get_if<double>(&value)) hash.add(*number);
    if (const auto* choice = std::get_if<std::string>(&value)) hash.add(std::string_view(*choice));
  }
}

void add_batch(Hash& hash, const Case& c) {
  for (Axis axis : kAllAxes) {
    if (c.shape[axis] == -1) continue;
    hash.add(name(axis));
    hash.add(c.shape[axis]);
  }
  hash.add(c.batch.fields.size());
  for (const auto& [field, tensor] : c.batch.fields) {
    hash.add(std::string_view(field));
    hash.add(name(tensor.dtype));
    hash.add(tensor.extents.size());
    for (std::int64_t extent : tensor.extents) hash.add(extent);
    hash.add(std::span<const std::byte>(tensor.bytes));
  }
}

void add_split(Hash& hash, const Split& split) {
  hash.add(std::int64_t{split.world});
  hash.add(split.parts.size());
  for (const Split::Part& part : split.parts) {
    hash.add(std::int64_t{part.rank});
    hash.add(part.sequences.size());
    for (std::int64_t sequence : part.sequences) hash.add(sequence);
  }
}

}  // namespace

std::string case_id(const Case& c) {
  Hash hash;
  add_spec(hash, c.spec);
  add_batch(hash, c);
  add_split(hash, c.split);
  hash.add(name(c.layout));
  hash.add(c.upstream);
  std::string id(16, '0');
  std::uint64_t word = hash.value();
  for (std::size_t i = id.size(); i-- > 0; word >>= 4) id[i] = "0123456789abcdef"[word & 15];
  return id;
}

}  // namespace lossgate::corpora
