// SPDX-License-Identifier: Apache-2.0
#include "fuzz/repeat_row.h"

#include <cstring>

namespace lossgate::fuzz {
namespace {

constexpr double kHowOften = 1.0 / 16;

}  // namespace

void repeat_a_row(const LossSignature& signature, Choices& choices, Case& c) {
  const std::int64_t sequences = c.shape[Axis::sequences];
  if (sequences < 2 || !choices.sometimes(kHowOften)) return;
  const std::int64_t from = choices.integer(0, sequences - 1);
  const std::int64_t to = (from + choices.integer(1, sequences - 1)) % sequences;
  for (const Field& field : signature.fields) {
    if (!has_rows(field.axes) || field.even_groups) continue;
    Tensor& tensor = c.batch.at(field.name);
    const std::int64_t width = tensor.size() / sequences;
    if (width == 0) continue;
    std::memcpy(tensor.element(to * width), tensor.element(from * width),
                static_cast<std::size_t>(width) * static_cast<std::size_t>(size_of(tensor.dtype)));
  }
}

}  // namespace lossgate::fuzz
