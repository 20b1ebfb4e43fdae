// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/linear_grpo_eager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "impl/faulty/distributions.h"

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
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        vocab_(micro_batch.part.shape[Axis::vocab]),
        width_(micro_batch.part.shape[Axis::hidden]),
        temperature_(static_cast<V>(micro_batch.part.spec.number("temperature"))),
        reads_all_(is(LinearGrpoFault::scores_masked_positions) ||
                   options.objective.fault == GrpoFault::unclamped_exp_mask_multiply) {}

  LossResult run() {
    LossResult result = objective();
    const Tensor by_log_prob = std::move(result.outputs.back().tensor);
    result.outputs.pop_back();
    take_back(by_log_prob);
    result.outputs.push_back({"gradient.hidden", by_hidden()});
    result.outputs.push_back({"gradient.weight", by_weight()});
    result.outputs.push_back({"gradient.bias", by_bias()});
    return result;
  }

 private:
  /// One position's log-probs on a tape of their own.
  struct Position {
    Tape<Format> tape;
    Row leaves, log_probs;
  };

  bool is(LinearGrpoFault fault) const { return options_.fault == fault; }
  static Dtype wide() { return sizeof(V) == 8 ? Dtype::f64 : Dtype::f32; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  V entry(std::string_view name, std::int64_t at) const {
    return static_cast<V>(field(name).at(at));
  }
  bool reads(std::int64_t at) const {
    return reads_all_ || batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  std::size_t label(std::int64_t at) const {
    return static_cast<std::size_t>(std::max<std::int64_t>(field("label").integer_at(at), 0));
  }

  V logit(std::int64_t at, std::int64_t v) const {
    V sum = entry("bias", v);
    for (std::int64_t h = 0; h < width_; ++h) {
      sum += entry("hidden", at * width_ + h) * entry("weight", v * width_ + h);
    }
    return sum;
  }

  void score(std::int64_t at, Position& position) const {
    Row cooled;
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const Variable x = position.tape.variable(logit(at, v));
      position.leaves.push_back(x);
      const bool plain = temperature_ == V(1) || is(LinearGrpoFault::temperature_ignored);
      cooled.push_back(plain ? x : x / position.tape.constant(temperature_));
    }
    position.log_probs = log_softmax(cooled);
  }

  /// The eager GRPO program on the log-probs of the labels.
  LossResult objective() const {
    Tensor log_prob = Tensor::zeros(wide(), {rows_, tokens_});
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      if (!reads(at)) continue;
      Position position;
      score(at, position);
      log_prob.set(at, static_cast<double>(position.log_probs[label(at)].value()));
    }
    Case part = batch_.part;
    part.batch.fields.emplace_back("log_prob", std::move(log_prob));
    MicroBatch inner{batch_.signature,   part,        batch_.positions, batch_.totals,
                     batch_.rank_totals, batch_.rank, batch_.world,     batch_.index,
                     batch_.count};
    return options_.objective_in_f16 ? eager_grpo_in_f16(inner, options_.objective)
                                     : eager_grpo(inner, options_.objective);
  }

  /// The gradient by logit of every position that was read.
  void take_back(const Tensor& by_log_prob) {
    by_logit_.assign(static_cast<std::size_t>(rows_ * tokens_), {});
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      if (!reads(at)) continue;
      Position position;
      score(at, position);
      position.tape.backward(position.log_probs[label(at)], static_cast<V>(by_log_prob.at(at)));
      for (const Variable& leaf : position.leaves) {
        by_logit_[static_cast<std::size_t>(at)].push_back(position.tape.gradient(leaf));
      }
    }
  }

  Tensor by_hidden() const {
    Tensor gradient = Tensor::zeros(wide(), field("hidden").extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const std::vector<V>& slopes = by_logit_[static_cast<std::size_t>(i / width_)];
      V sum = 0;
      for (std::size_t v = 0; v < slopes.size(); ++v) {
        sum += slopes[v] * entry("weight", static_cast<std::int64_t>(v) * width_ + i % width_);
      }
      gradient.set(i, static_cast<double>(sum));
    }
    return gradient;
  }

  /// Position by position; faulty: sequence by sequence into the weight's own format.
  Tensor by_weight() const {
    const Tensor& weight = field("weight");
    const bool narrow = is(LinearGrpoFault::weight_gradient_in_16_bits);
    Tensor gradient = Tensor::zeros(wide(), weight.extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      V total = 0, sum = 0;
      for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
        const std::vector<V>& slopes = by_logit_[static_cast<std::size_t>(at)];
        if (!slopes.empty()) {
          sum += slopes[static_cast<std::size_t>(i / width_)] *
                 entry("hidden", at * width_ + i % width_);
        }
        if (narrow && (at + 1) % tokens_ == 0) {
          total = static_cast<V>(
              round_to(weight.dtype, static_cast<double>(total) + static_cast<double>(sum)));
          sum = 0;
        }
      }
      gradient.set(i, static_cast<double>(total + sum));
    }
    return gradient;
  }

  Tensor by_bias() const {
    Tensor gradient = Tensor::zeros(wide(), field("bias").extents);
    std::vector<V> slopes(by_logit_.size());
    for (std::int64_t v = 0; v < vocab_; ++v) {
      for (std::size_t at = 0; at < slopes.size(); ++at) {
        slopes[at] = by_logit_[at].empty() ? V(0) : by_logit_[at][static_cast<std::size_t>(v)];
      }
      gradient.set(v, static_cast<double>(overflow_free_sum(slopes.data(), slopes.size())));
    }
    return gradient;
  }

  MicroBatch& batch_;
  EagerLinearGrpoOptions options_;
  std::int64_t rows_, tokens_, vocab_, width_;
  V temperature_;
  bool reads_all_;
  std::vector<std::vector<V>> by_logit_;  ///< of each position; empty where it was not read
};

}  // namespace

LossResult eager_linear_grpo(MicroBatch& micro_batch, const EagerLinearGrpoOptions& options) {
  return float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64
             ? EagerLinearGrpo<F64>(micro_batch, options).run()
             : EagerLinearGrpo<F32>(micro_batch, options).run();
}

}  // namespace lossgate::impl
