// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/value_clip_eager.h"

#include <optional>

#include "impl/faulty/moved_field.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The blocks that a launch may have along its second axis.
constexpr std::int64_t kGrid = 65535;

/// How many terms a thread block of three warps adds up, and how many terms one launch does.
constexpr std::int64_t kGroup = 96, kOneLaunch = 65536;

template <class Format>
class EagerValueClip {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerValueClip(MicroBatch& batch, ValueClipFault fault)
      : batch_(batch),
        in_(batch),
        fault_(fault),
        around_old_(batch.part.spec.choice("clip_form") == "around_old"),
        limit_(in_.limit("value_clip")) {}

  LossResult run() {
    const bool two_launches = std::ssize(batch_.positions.valid) > kOneLaunch;
    const bool full = is(ValueClipFault::loss_of_full_groups) && two_launches;
    const PositionRules rules = {.leaf = "value",
                                 .multiplies_mask = is(ValueClipFault::masked_multiply),
                                 .local_means = is(ValueClipFault::mean_of_micro_batch_means),
                                 .divides_by_zero = is(ValueClipFault::empty_divisor),
                                 .group = full ? kGroup : 1};
    return run_by_position<Format>(batch_, rules, [this](Variable value, std::int64_t at) {
      if (is(ValueClipFault::beyond_grid) && at >= kGrid) return value.tape().constant(0);
      const auto constant = [&](std::string_view field) {
        return value.tape().constant(in_.field(field, at));
      };
      return loss_of(value, constant("old_value"), constant("return"));
    });
  }

 private:
  bool is(ValueClipFault fault) const { return fault_ == fault; }

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

  /// Halved before the square can overflow.
  Variable half_square(Variable x) {
    const Variable half = x.tape().constant(V(0.5));
    return is(ValueClipFault::square_then_half) ? half * (x * x) : (half * x) * x;
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  ValueClipFault fault_;
  bool around_old_;
  std::optional<V> limit_;
};

/// A row's tokens counted as the sum of a mask in bf16, which has eight bits.
LossResult with_counts_in_bf16(const Step& step, MicroBatch& micro_batch) {
  Positions counted = micro_batch.positions;
  for (std::int64_t& tokens : counted.row_tokens) {
    tokens = static_cast<std::int64_t>(round_to(Dtype::bf16, static_cast<double>(tokens)));
  }
  MicroBatch rounded = micro_batch.with(micro_batch.part, counted);
  return step(rounded);
}

}  // namespace

LossResult eager_value_clip(MicroBatch& micro_batch, ValueClipFault fault) {
  const Step step = step_of<EagerValueClip>(fault);
  if (fault == ValueClipFault::row_count_in_bf16) return with_counts_in_bf16(step, micro_batch);
  if (fault == ValueClipFault::mask_one_token_on) {
    return with_moved_field(step, micro_batch, "mask", 1, 0.0);
  }
  return step(micro_batch);
}

LossResult eager_value_clip_in_f16(MicroBatch& micro_batch, ValueClipFault fault) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  if (dtype == Dtype::f16) return EagerValueClip<F16>(micro_batch, fault).run();
  return eager_value_clip(micro_batch, fault);
}

}  // namespace lossgate::impl
