// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/token_weight.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

enum class ScalingFault { none, local_counts, no_floor, scaled_twice, padding_counted };

Totals counts_for(const MicroBatch& micro_batch, ScalingFault fault) {
  const Positions& here = micro_batch.positions;
  switch (fault) {
    case ScalingFault::local_counts:
    case ScalingFault::no_floor:
      return {.tokens = here.tokens, .sequences = here.sequences};
    case ScalingFault::padding_counted: {
      const Shape& shape = micro_batch.part.shape;
      return {.tokens = shape[Axis::sequences] * shape[Axis::tokens],
              .sequences = shape[Axis::sequences]};
    }
    default:
      return micro_batch.totals;
  }
}

template <class F>
LossResult scale(MicroBatch& micro_batch, ScalingFault fault) {
  const Tensor& advantage = micro_batch.part.batch.at("advantage");
  const Positions& positions = micro_batch.positions;
  LossSpec spec = micro_batch.part.spec;
  spec.reduction = parse_reduction(spec.choice("normalisation")).value();
  const Totals totals = counts_for(micro_batch, fault);
  Tensor scaled = Tensor::zeros(sizeof(F) == 8 ? Dtype::f64 : Dtype::f32, advantage.extents);
  const std::size_t columns =
      positions.row_tokens.empty() ? 0 : positions.valid.size() / positions.row_tokens.size();
  for (std::size_t at = 0; at < positions.valid.size(); ++at) {
    const std::int64_t row_tokens = positions.row_tokens[at / columns];
    if (fault == ScalingFault::no_floor) {
      // sum(mask) is 0 in an empty batch, and 0 / 0 is NaN.
      const F masked = static_cast<F>(positions.valid[at]);
      scaled.set(static_cast<std::int64_t>(at), masked / static_cast<F>(totals.tokens));
    }
    if (positions.valid[at] == 0) continue;
    const F weight = token_weight<F>(spec, totals, row_tokens);
    F value = static_cast<F>(advantage.at(static_cast<std::int64_t>(at))) * weight;
    if (fault == ScalingFault::scaled_twice) value *= weight;
    scaled.set(static_cast<std::int64_t>(at), value);
  }
  LossResult result;
  result.outputs.push_back({"scaled_advantage", std::move(scaled)});
  return result;
}

Implementation implementation(std::string name, ScalingFault fault) {
  const Step step = [fault](MicroBatch& part) {
    const bool wide = part.part.batch.at("advantage").dtype == Dtype::f64;
    return wide ? scale<double>(part, fault) : scale<float>(part, fault);
  };
  return eager_implementation(
      {.loss = "advantage_scaling", .source = {"impl/faulty/advantage_operation.cpp", 30}},
      std::move(name), step);
}

Implementation faulty(std::string name, ScalingFault fault, std::string cause, std::string trigger,
                      std::vector<std::string> killers) {
  Implementation i = implementation(std::move(name), fault);
  i.fault = Fault{.twin = "eager",
                  .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                  .cause = std::move(cause),
                  .trigger = std::move(trigger),
                  .killers = std::move(killers)};
  return i;
}

}  // namespace

std::vector<Implementation> advantage_scaling_implementations() {
  std::vector<Implementation> all = {implementation("eager", ScalingFault::none)};
  all.push_back(faulty("counts_of_micro_batch", ScalingFault::local_counts, "mean of means",
                       "two micro-batches with valid tokens", {"split_invariance"}));
  all.push_back(faulty("divisor_without_floor", ScalingFault::no_floor, "empty divisor",
                       "a fully masked mini-batch", {"empty_is_zero"}));
  all.push_back(faulty("scaled_twice", ScalingFault::scaled_twice, "scaled twice",
                       "a critic that runs the normalisation again", {"reference_agreement"}));
  all.push_back(faulty("padding_counted", ScalingFault::padding_counted, "padding counted",
                       "a masked position", {"reference_agreement", "padding_invariance"}));
  return all;
}

}  // namespace lossgate::impl
