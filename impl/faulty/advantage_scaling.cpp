// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/advantage_scaling.h"

#include <algorithm>

#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

void scale_first_sequences(const LossSignature& signature, Case& c, std::int64_t sequences) {
  const Positions positions = find_positions(signature, c);
  const Totals totals{positions.tokens, positions.sequences};
  const Tensor& advantage = c.batch.at(signature.advantage);
  const std::int64_t tokens = c.shape[Axis::tokens];
  Tensor scaled = Tensor::zeros(Dtype::f64, advantage.extents);
  for (std::int64_t i = 0; i < sequences * tokens; ++i) {
    if (!positions.valid[static_cast<std::size_t>(i)]) continue;
    const std::int64_t own = positions.row_tokens[static_cast<std::size_t>(i / tokens)];
    scaled.set(i, advantage.at(i) * token_weight<double>(c.spec, totals, own));
  }
  c.batch.at(signature.advantage) = std::move(scaled);
}

}  // namespace

void scale_advantages(const LossSignature& signature, Case& c) {
  scale_first_sequences(signature, c, c.shape[Axis::sequences]);
}

void scale_advantages_twice(const LossSignature& signature, Case& c) {
  scale_advantages(signature, c);
  scale_advantages(signature, c);
}

void scale_advantages_without_remainder(const LossSignature& signature, Case& c) {
  const std::int64_t sequences = c.shape[Axis::sequences];
  std::int64_t step = c.split.whole() ? sequences : 1;
  for (const Split::Part& part : c.split.parts) {
    step = std::max(step, static_cast<std::int64_t>(part.sequences.size()));
  }
  scale_first_sequences(signature, c, step > 0 ? sequences - sequences % step : 0);
}

}  // namespace lossgate::impl
