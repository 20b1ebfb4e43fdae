// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/jsd_eager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "impl/faulty/distributions.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

DivergenceFault divergence_fault(JsdFault fault) {
  if (fault == JsdFault::joined) return DivergenceFault::joined;
  if (fault == JsdFault::log_of_mixture_underflow) return DivergenceFault::log_of_mixture;
  if (fault == JsdFault::infinite_logits_times_zero) return DivergenceFault::zero_times_log;
  return DivergenceFault::none;
}

template <class Format>
class EagerJsd {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerJsd(MicroBatch& micro_batch, const EagerJsdOptions& options, bool linear)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        options_(options),
        linear_(linear),
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        vocab_(micro_batch.part.shape[Axis::vocab]),
        width_(linear ? micro_batch.part.shape[Axis::hidden] : 0),
        temperature_(static_cast<V>(spec_.number("temperature"))),
        divergence_(spec_.number("beta"), divergence_fault(options.fault),
                    !linear && spec_.number("soft_cross_entropy") != 0.0) {}

  LossResult run() {
    std::vector<Variable> even, odd;
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      terms_.push_back(term_of(at));
      const std::int64_t row = at / tokens_;
      const bool apart = options_.two_buffers && row % 2 != 0;
      (apart ? odd : even).push_back(terms_.back() * tape_.constant(weight_of(row)));
    }
    Variable loss = tape_.sum(even);
    if (options_.two_buffers) loss = loss + tape_.sum(odd);
    tape_.backward(loss, is(JsdFault::upstream_in_hidden_gradient_alone) ? V(1) : upstream());
    return collect(loss);
  }

 private:
  bool is(JsdFault fault) const { return options_.fault == fault; }
  bool valid(std::int64_t at) const {
    return batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  V upstream() const { return static_cast<V>(batch_.part.upstream); }

  Variable term_of(std::int64_t at) {
    const bool multiplies = is(JsdFault::masked_multiply);
    if (!valid(at) && !multiplies) {
      leaves_.emplace_back();
      return tape_.constant(0);
    }
    leaves_.push_back(logits("student", at, true));
    const Row p = log_softmax(cooled(leaves_.back()));
    const Row q = log_softmax(cooled(logits("teacher", at, false)));
    const Variable term = divergence_(p, q);
    return multiplies ? term * tape_.constant(valid(at)) : term;
  }

  Row logits(const std::string& side, std::int64_t at, bool tracked) {
    Row row;
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const V x = linear_ ? product(side, at, v)
                          : static_cast<V>(field(side + "_logits").at(at * vocab_ + v));
      row.push_back(tracked ? tape_.variable(x) : tape_.constant(x));
    }
    return row;
  }

  V product(const std::string& side, std::int64_t at, std::int64_t v) const {
    const Tensor &hidden = field(side + "_hidden"), &weight = field(side + "_weight");
    V sum = 0;
    for (std::int64_t h = 0; h < width_; ++h) {
      sum += static_cast<V>(hidden.at(at * width_ + h)) * static_cast<V>(weight.at(v * width_ + h));
    }
    if (is(JsdFault::logits_in_bf16))
      sum = static_cast<V>(round_to(Dtype::bf16, static_cast<double>(sum)));
    return sum;
  }

  Row cooled(const Row& row) {
    if (temperature_ == V(1)) return row;
    Row result;
    for (const Variable& x : row) result.push_back(x / tape_.constant(temperature_));
    return result;
  }

  /// Of one buffer: the rows whose number has the same parity.
  std::int64_t buffer_tokens(std::int64_t parity) const {
    std::int64_t count = 0;
    for (std::int64_t row = parity; row < rows_; row += 2) {
      count += batch_.positions.row_tokens[static_cast<std::size_t>(row)];
    }
    return count;
  }

  V weight_of(std::int64_t row) const {
    const std::int64_t own = batch_.positions.row_tokens[static_cast<std::size_t>(row)];
    const bool mean = spec_.reduction == Reduction::token_mean;
    Totals totals = batch_.totals;
    if (is(JsdFault::local_token_mean)) totals.tokens = batch_.positions.tokens;
    if (is(JsdFault::batchmean_by_rows)) totals.tokens = rows_;
    if (is(JsdFault::mixed_means_averaged) && mean && own > 0) {
      const std::int64_t mine = buffer_tokens(row % 2), other = buffer_tokens(1 - row % 2);
      const V share = static_cast<V>(mine + other) / static_cast<V>(totals.tokens);
      return share / static_cast<V>(mine * (other > 0 ? 2 : 1));
    }
    if (is(JsdFault::num_items_ignored) && spec_.reduction == Reduction::sum_over_items) {
      return own > 0 ? V(1) / static_cast<V>(totals.tokens) : V(0);
    }
    return token_weight<V>(spec_, totals, own);
  }

  /// By logit, before the temperature; 0 where the position was not read.
  V slope(std::int64_t at, std::int64_t v) const {
    const Row& row = leaves_[static_cast<std::size_t>(at)];
    if (row.empty()) return V(0);
    const V g = tape_.gradient(row[static_cast<std::size_t>(v)]);
    return is(JsdFault::temperature_forgotten_in_gradient) ? g * temperature_ : g;
  }

  static Dtype wide() { return sizeof(V) == 8 ? Dtype::f64 : Dtype::f32; }

  LossResult collect(Variable loss) {
    const Extents positions = {rows_, tokens_};
    Tensor total = Tensor::zeros(wide(), {}), per_token = Tensor::zeros(wide(), positions);
    total.set(0, static_cast<double>(loss.value()));
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      per_token.set(at, static_cast<double>(terms_[static_cast<std::size_t>(at)].value()));
    }
    LossResult result;
    result.outputs.push_back({"loss", std::move(total)});
    result.outputs.push_back({"per_token", std::move(per_token)});
    if (linear_) {
      result.outputs.push_back({"gradient.student_hidden", hidden_gradient()});
      result.outputs.push_back({"gradient.student_weight", weight_gradient()});
    } else {
      result.outputs.push_back({"gradient.student_logits", logits_gradient()});
    }
    return result;
  }

  Tensor logits_gradient() const {
    Tensor gradient = Tensor::zeros(wide(), field("student_logits").extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      gradient.set(i, static_cast<double>(slope(i / vocab_, i % vocab_)));
    }
    return gradient;
  }

  Tensor hidden_gradient() const {
    const Tensor& weight = field("student_weight");
    Tensor gradient = Tensor::zeros(wide(), field("student_hidden").extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const std::int64_t at = i / width_, h = i % width_;
      if (leaves_[static_cast<std::size_t>(at)].empty()) continue;
      V sum = 0;
      for (std::int64_t v = 0; v < vocab_; ++v) {
        sum += slope(at, v) * static_cast<V>(weight.at(v * width_ + h));
      }
      if (is(JsdFault::upstream_in_hidden_gradient_alone)) sum *= upstream();
      gradient.set(i, static_cast<double>(sum));
    }
    return gradient;
  }

  Tensor weight_gradient() const {
    const Tensor& hidden = field("student_hidden");
    Tensor gradient = Tensor::zeros(wide(), field("student_weight").extents);
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const std::int64_t v = i / width_, h = i % width_;
      V sum = 0;
      for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
        if (leaves_[static_cast<std::size_t>(at)].empty()) continue;
        sum += slope(at, v) * static_cast<V>(hidden.at(at * width_ + h));
        if (is(JsdFault::weight_gradient_accumulated_in_bf16)) {
          sum = static_cast<V>(round_to(Dtype::bf16, static_cast<double>(sum)));
        }
      }
      gradient.set(i, static_cast<double>(sum));
    }
    return gradient;
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  EagerJsdOptions options_;
  bool linear_;
  std::int64_t rows_, tokens_, vocab_, width_;
  V temperature_;
  JensenShannon<Format> divergence_;
  Tape<Format> tape_;
  std::vector<Row> leaves_;  ///< of each position; empty where masked
  std::vector<Variable> terms_;
};

LossResult run(MicroBatch& micro_batch, const EagerJsdOptions& options, bool linear) {
  const LossSignature& signature = micro_batch.signature;
  return float_dtype(signature, micro_batch.part) == Dtype::f64
             ? EagerJsd<F64>(micro_batch, options, linear).run()
             : EagerJsd<F32>(micro_batch, options, linear).run();
}

}  // namespace

LossResult eager_jsd(MicroBatch& micro_batch, const EagerJsdOptions& options) {
  return run(micro_batch, options, false);
}

LossResult eager_linear_jsd(MicroBatch& micro_batch, const EagerJsdOptions& options) {
  return run(micro_batch, options, true);
}

}  // namespace lossgate::impl
