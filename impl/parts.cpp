// SPDX-License-Identifier: Apache-2.0
#include "impl/parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lossgate::impl {
namespace {

/// Bytes of tensors up to which storage is kept for the next case.
constexpr std::size_t kSmall = 1 << 20;

thread_local Case last;

std::size_t row_bytes(const Tensor& tensor) {
  return tensor.extents.front() > 0
             ? tensor.bytes.size() / static_cast<std::size_t>(tensor.extents.front())
             : 0;
}

Tensor take_rows(const Tensor& tensor, const std::vector<std::int64_t>& rows) {
  Tensor taken{tensor.dtype, tensor.extents, {}};
  taken.extents.front() = static_cast<std::int64_t>(rows.size());
  const std::size_t width = row_bytes(tensor);
  taken.bytes.resize(width * rows.size());
  for (std::size_t i = 0; i < rows.size() && width > 0; ++i) {
    std::memcpy(taken.bytes.data() + i * width,
                tensor.bytes.data() + static_cast<std::size_t>(rows[i]) * width, width);
  }
  return taken;
}

/// A vector of bytes would compare them one by one.
bool same(const Tensor& a, const Tensor& b) {
  const std::size_t count = a.bytes.size();
  return a.dtype == b.dtype && a.extents == b.extents && count == b.bytes.size() &&
         (count == 0 || std::memcmp(a.bytes.data(), b.bytes.data(), count) == 0);
}

}  // namespace

Case take_part(const LossSignature& signature, const Case& c,
               const std::vector<std::int64_t>& rows) {
  Case part{.spec = c.spec,
            .shape = c.shape,
            .batch = {},
            .split = {},
            .layout = c.layout,
            .upstream = c.upstream,
            .grad_mode = c.grad_mode,
            .history = c.history,
            .provenance = {}};
  part.shape[Axis::sequences] = static_cast<std::int64_t>(rows.size());
  part.batch.fields.reserve(c.batch.fields.size());
  for (const auto& [name, tensor] : c.batch.fields) {
    const Field* field = signature.find_field(name);
    const bool sliced = field && has_rows(field->axes);
    part.batch.fields.emplace_back(name, sliced ? take_rows(tensor, rows) : tensor);
  }
  return part;
}

WholePart::WholePart(const Case& c) : part_(std::exchange(last, {})) {
  part_.spec = c.spec;
  part_.shape = c.shape;
  part_.batch = c.batch;
  part_.split = {};
  part_.layout = c.layout;
  part_.upstream = c.upstream;
  part_.grad_mode = c.grad_mode;
  part_.history = c.history;
  part_.provenance = {};
}

WholePart::~WholePart() {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : part_.batch.fields) bytes += tensor.bytes.capacity();
  if (bytes <= kSmall) last = std::move(part_);
}

void note_mutations(const LossSignature& signature, const Case& c, const Case& part,
                    const std::vector<std::int64_t>* rows, std::vector<std::string>& mutated) {
  for (const auto& [name, before] : c.batch.fields) {
    const Tensor* after = part.batch.find(name);
    const Field* field = rows ? signature.find_field(name) : nullptr;
    const bool sliced = field && has_rows(field->axes);
    const bool kept =
        after && (sliced ? same(*after, take_rows(before, *rows)) : same(*after, before));
    if (!kept && std::ranges::find(mutated, name) == mutated.end()) mutated.push_back(name);
  }
}

}  // namespace lossgate::impl
