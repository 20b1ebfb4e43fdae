// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/linear_grpo_eager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "impl/faulty/distributions.h"
#include "impl/faulty/output_layer.h"

namespace lossgate::impl {
namespace {

template <class Format>
class EagerLinearGrpo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerLinearGrpo(MicroBatch& micro_batch, const EagerLinearGrpoOptions& options)
      : batch_(micro_batch),
        options_(options),
        layer_(micro_batch, options.fault == LinearGrpoFault::weight_gradient_in_16_bits),
        temperature_(static_cast<V>(micro_batch.part.spec.number("temperature"))),
        reads_all_(is(LinearGrpoFault::scores_masked_positions) ||
                   options.objective.fault == GrpoFault::unclamped_exp_mask_multiply) {}

  LossResult run() {
    return layer_.taken_back(objective(),
                             [this](const Tensor& by_log_prob) { return slopes_of(by_log_prob); });
  }

 private:
  /// One position's log-probs on a tape of their own.
  struct Position {
    Tape<Format> tape;
    Row leaves, log_probs;
  };

  bool is(LinearGrpoFault fault) const { return options_.fault == fault; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  bool reads(std::int64_t at) const {
    return reads_all_ || batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  std::size_t label(std::int64_t at) const {
    return static_cast<std::size_t>(std::max<std::int64_t>(field("label").integer_at(at), 0));
  }

  void score(std::int64_t at, Position& position) const {
    Row cooled;
    for (std::int64_t v = 0; v < layer_.vocab(); ++v) {
      const Variable x = position.tape.variable(layer_.logit(at, v));
      position.leaves.push_back(x);
      const bool plain = temperature_ == V(1) || is(LinearGrpoFault::temperature_ignored);
      cooled.push_back(plain ? x : x / position.tape.constant(temperature_));
    }
    position.log_probs = log_softmax(cooled);
  }

  /// The eager GRPO program on the log-probs of the labels.
  LossResult objective() const {
    Tensor log_prob = Tensor::zeros(layer_.wide(), field("label").extents);
    for (std::int64_t at = 0; at < layer_.positions(); ++at) {
      if (!reads(at)) continue;
      Position position;
      score(at, position);
      log_prob.set(at, static_cast<double>(position.log_probs[label(at)].value()));
    }
    Case part = batch_.part;
    part.batch.fields.emplace_back("log_prob", std::move(log_prob));
    MicroBatch inner = batch_.with(part, batch_.positions);
    return options_.objective_in_f16 ? eager_grpo_in_f16(inner, options_.objective)
                                     : eager_grpo(inner, options_.objective);
  }

  /// The gradient by logit of every position that was read.
  typename EagerLayer<V>::Slopes slopes_of(const Tensor& by_log_prob) const {
    typename EagerLayer<V>::Slopes slopes(static_cast<std::size_t>(layer_.positions()));
    for (std::int64_t at = 0; at < layer_.positions(); ++at) {
      if (!reads(at)) continue;
      Position position;
      score(at, position);
      position.tape.backward(position.log_probs[label(at)], static_cast<V>(by_log_prob.at(at)));
      for (const Variable& leaf : position.leaves) {
        slopes[static_cast<std::size_t>(at)].push_back(position.tape.gradient(leaf));
      }
    }
    return slopes;
  }

  MicroBatch& batch_;
  EagerLinearGrpoOptions options_;
  EagerLayer<V> layer_;
  V temperature_;
  bool reads_all_;
};

}  // namespace

LossResult eager_linear_grpo(MicroBatch& micro_batch, const EagerLinearGrpoOptions& options) {
  return float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64
             ? EagerLinearGrpo<F64>(micro_batch, options).run()
             : EagerLinearGrpo<F32>(micro_batch, options).run();
}

}  // namespace lossgate::impl
