// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/value_clip_eager.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "impl/faulty/tape_functions.h"
#include "impl/faulty/tape_result.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

template <class Format>
class EagerValueClip {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerValueClip(MicroBatch& micro_batch, ValueClipFault fault)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        fault_(fault),
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        around_old_(spec_.choice("clip_form") == "around_old") {
    if (!spec_.is_none("value_clip")) limit_ = static_cast<V>(spec_.number("value_clip"));
  }

  LossResult run() {
    std::vector<Variable> weighted;
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      terms_.push_back(term_of(at));
      weighted.push_back(terms_.back() * tape_.constant(weight_of(at / tokens_)));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return result_by_position(tape_, loss, terms_, leaves_, {rows_, tokens_}, "gradient.value");
  }

 private:
  bool is(ValueClipFault fault) const { return fault_ == fault; }
  Variable number(double x) { return tape_.constant(static_cast<V>(x)); }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }

  Variable term_of(std::int64_t at) {
    const bool valid = batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
    const bool multiplies = is(ValueClipFault::masked_multiply);
    if (!valid && !multiplies) {
      leaves_.push_back(number(0.0));
      return number(0.0);
    }
    const Variable value = tape_.variable(static_cast<V>(field("value").at(at)));
    leaves_.push_back(value);
    const Variable target = number(field("return").at(at));
    const Variable term = loss_of(value, number(field("old_value").at(at)), target);
    return multiplies ? term * number(valid) : term;
  }

  Variable loss_of(Variable value, Variable old, Variable target) {
    const Variable distance = value - target;
    if (!limit_) return half_square(size(distance));
    const Variable other = clipped(value, old) - target;
    if (is(ValueClipFault::minimum_of_squares)) {
      return half_square(minimum(size(distance), size(other)));
    }
    return half_square(maximum(size(distance), size(other)));
  }

  /// NaN in old_value is no bound, but must show.
  Variable clipped(Variable value, Variable old) {
    const V at = old.value();
    const bool leaks = is(ValueClipFault::clip_gradient_leaks);
    if (around_old_) {
      const Variable moved = clamp(value - old, -*limit_, *limit_);
      return old + (leaks ? straight_through(moved, value) : moved);
    }
    const Variable bounded = clamp(value, at - *limit_, at + *limit_);
    return where(at == at, leaks ? straight_through(bounded, value) : bounded, old);
  }

  /// The number `forward` with the derivative of `backward`.
  Variable straight_through(Variable forward, Variable backward) {
    return detach(forward) + (backward - detach(backward));
  }

  Variable size(Variable x) { return where(x.value() < V(0), -x, x); }

  /// Of a size: halved where it neither underflows nor lets the square overflow.
  Variable half_square(Variable x) {
    const bool squares_first = is(ValueClipFault::square_then_half) || x.value() <= V(1);
    return squares_first ? number(0.5) * (x * x) : (number(0.5) * x) * x;
  }

  V weight_of(std::int64_t row) const {
    const std::int64_t own = batch_.positions.row_tokens[static_cast<std::size_t>(row)];
    Totals totals = batch_.totals;
    if (is(ValueClipFault::mean_of_micro_batch_means)) {
      totals = {batch_.positions.tokens, batch_.positions.sequences};
    }
    const bool mean = spec_.reduction != Reduction::sum;
    const bool nothing =
        spec_.reduction == Reduction::sequence_mean ? own == 0 : totals.tokens == 0;
    if (is(ValueClipFault::empty_divisor) && mean && nothing) {
      return std::numeric_limits<V>::infinity();
    }
    return token_weight<V>(spec_, totals, own);
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  ValueClipFault fault_;
  std::int64_t rows_, tokens_;
  bool around_old_;
  std::optional<V> limit_;
  Tape<Format> tape_;
  std::vector<Variable> leaves_, terms_;
};

}  // namespace

LossResult eager_value_clip(MicroBatch& micro_batch, ValueClipFault fault) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  if (dtype == Dtype::f64) return EagerValueClip<F64>(micro_batch, fault).run();
  return EagerValueClip<F32>(micro_batch, fault).run();
}

LossResult eager_value_clip_in_f16(MicroBatch& micro_batch, ValueClipFault fault) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  if (dtype == Dtype::f16) return EagerValueClip<F16>(micro_batch, fault).run();
  return eager_value_clip(micro_batch, fault);
}

}  // namespace lossgate::impl
