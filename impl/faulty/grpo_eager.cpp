// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/grpo_eager.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "impl/faulty/grpo_kl.h"
#include "impl/faulty/tape_functions.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Format>
class EagerGrpo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerGrpo(MicroBatch& micro_batch, const EagerGrpoOptions& options)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        fault_(options.fault),
        scaled_(options.advantages_scaled),
        rows_(static_cast<std::size_t>(micro_batch.part.shape[Axis::sequences])),
        tokens_(static_cast<std::size_t>(micro_batch.part.shape[Axis::tokens])),
        unmasked_(is(GrpoFault::unclamped_exp_mask_multiply) ||
                  is(GrpoFault::nan_to_num_gradient) ||
                  is(GrpoFault::mask_multiply_after_nan_to_num)),
        unclamped_(is(GrpoFault::unclamped_exp_mask_multiply) ||
                   is(GrpoFault::nan_to_num_gradient)),
        log_ratio_limit_(limit_of(spec_, "log_ratio_clamp")),
        dual_clip_(limit_of(spec_, "dual_clip")),
        kl_penalty_(spec_.number("kl_penalty")),
        kl_(spec_, unmasked_ || is(GrpoFault::output_clamp_only)),
        sequence_level_(spec_.choice("level") == "sequence") {
    if (unclamped_ || is(GrpoFault::output_clamp_only)) kl_.forget_input_limit();
    if (unclamped_) kl_.forget_output_limit();
    if (unclamped_ || is(GrpoFault::clamp_in_caller_only) ||
        (is(GrpoFault::token_clamp_not_sequence) && sequence_level_)) {
      log_ratio_limit_ = std::nullopt;
    }
  }

  LossResult run() {
    read_inputs();
    const std::vector<Variable> log_ratios = form_log_ratios();
    std::vector<Variable> terms, weighted;
    for (std::size_t at = 0; at < inputs_.size(); ++at) {
      const Variable term = finish(at, term_of(at, log_ratios[at]));
      terms.push_back(term);
      weighted.push_back(scaled_ ? term : term * number(weight_of(at / columns())));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return collect(loss, terms);
  }

 private:
  struct Input {
    bool valid;
    Variable leaf, log_prob, old_log_prob, ref_log_prob, advantage;
  };

  bool is(GrpoFault fault) const { return fault_ == fault; }
  Variable number(double x) { return tape_.constant(static_cast<V>(x)); }
  std::size_t columns() const { return tokens_ > 0 ? tokens_ : 1; }

  /// Faulty: what follows a valid position, too.
  bool trains_on(std::size_t at) const {
    const auto& valid = batch_.positions.valid;
    if (valid[at] != 0) return true;
    return is(GrpoFault::first_padding_trained) && at % tokens_ > 0 && valid[at - 1] != 0;
  }

  void read_inputs() {
    const Batch& batch = batch_.part.batch;
    const Tensor &log_prob = batch.at("log_prob"), &old_log_prob = batch.at("old_log_prob"),
                 &ref_log_prob = batch.at("ref_log_prob"), &advantage = batch.at("advantage");
    const Variable zero = number(0.0);
    for (std::size_t at = 0; at < rows_ * tokens_; ++at) {
      const auto i = static_cast<std::int64_t>(at);
      Input in;
      in.valid = trains_on(at);
      const bool keep = in.valid || unmasked_;
      in.leaf = tape_.variable(static_cast<V>(log_prob.at(i)));
      in.log_prob = unmasked_ ? in.leaf : where(in.valid, in.leaf, zero);
      in.old_log_prob = number(keep ? old_log_prob.at(i) : 0.0);
      in.ref_log_prob = number(keep ? ref_log_prob.at(i) : 0.0);
      const bool biased = is(GrpoFault::advantage_bias_at_padding);
      in.advantage = number(keep || biased ? advantage.at(i) : 0.0);
      inputs_.push_back(in);
    }
  }

  /// Per position; at sequence level the mean of the row, as a sum of shares.
  std::vector<Variable> form_log_ratios() {
    std::vector<Variable> log_ratios;
    for (const Input& in : inputs_) log_ratios.push_back(in.log_prob - in.old_log_prob);
    if (!sequence_level_) return log_ratios;
    std::vector<Variable> shared;
    for (std::size_t row = 0; row < rows_; ++row) {
      const auto count =
          static_cast<double>(std::max<std::int64_t>(batch_.positions.row_tokens[row], 1));
      std::vector<Variable> shares;
      for (std::size_t at = row * tokens_; at < (row + 1) * tokens_; ++at) {
        const Variable d = log_ratios[at];
        const Variable own =
            unmasked_ ? d * number(inputs_[at].valid) : where(inputs_[at].valid, d, number(0.0));
        shares.push_back(own / number(count));
      }
      for (Variable copy : tape_.expand(tape_.sum(shares), tokens_)) shared.push_back(copy);
    }
    return shared;
  }

  Variable clamp_log_ratio(Variable d) {
    if (is(GrpoFault::dead_clamp)) d = detach(d);
    if (!log_ratio_limit_ || is(GrpoFault::clamp_ratio_after_exp)) return d;
    return clamp(d, static_cast<V>(-*log_ratio_limit_), static_cast<V>(*log_ratio_limit_));
  }

  Variable importance_weight(Variable d) {
    const Variable weight = exp(d);
    if (!log_ratio_limit_ || !is(GrpoFault::clamp_ratio_after_exp)) return weight;
    return clamp(weight, static_cast<V>(std::exp(-*log_ratio_limit_)),
                 static_cast<V>(std::exp(*log_ratio_limit_)));
  }

  /// The logarithm of a weight that is bounded itself.
  Variable log_weight(Variable d) {
    if (!log_ratio_limit_ || !is(GrpoFault::clamp_ratio_after_exp)) return d;
    return number(
        std::clamp(static_cast<double>(d.value()), -*log_ratio_limit_, *log_ratio_limit_));
  }

  double clip_low() const { return 1.0 - spec_.number("clip_low"); }
  double clip_high() const { return 1.0 + spec_.number("clip_high"); }

  /// A log-ratio that gives the surrogate the same value and slope and does not overflow exp: past
  /// a clip, or where the advantage is 0, one is as good as another. NaN is left where it is.
  Variable harmless(Variable d, const Input& in) {
    const V advantage = in.advantage.value(), log_ratio = d.value();
    const bool defined = in.log_prob.value() == in.log_prob.value() &&
                         in.old_log_prob.value() == in.old_log_prob.value();
    if (advantage == V(0)) return where(defined, number(0.0), d);
    const double bound = advantage > V(0) ? clip_high() : dual_clip_.value_or(kInfinity);
    const double past = std::log(bound) + 1.0;
    return where(static_cast<double>(log_ratio) > past, number(past), d);
  }

  /// Behind its clamp the log-ratio does not overflow exp: in f32, for which the program is
  /// written.
  bool bounded_by_clamp() const {
    return log_ratio_limit_ && std::exp(*log_ratio_limit_) < max_finite(Dtype::f32);
  }

  bool bounds_log_ratio_itself() const {
    return is(GrpoFault::clamp_ratio_after_exp) || is(GrpoFault::clamp_in_caller_only) ||
           is(GrpoFault::token_clamp_not_sequence) || unmasked_;
  }

  /// PPO's clipped surrogate.
  Variable surrogate(Variable weight, Variable advantage) {
    const Variable clipped =
        clamp(weight, static_cast<V>(clip_low()), static_cast<V>(clip_high())) * advantage;
    const Variable least = minimum(weight * advantage, clipped);
    const bool bounds = is(GrpoFault::dual_clip_of_positive) || advantage.value() < V(0);
    if (!dual_clip_ || !bounds) return -least;
    return -maximum(least, number(*dual_clip_) * advantage);
  }

  Variable term_of(std::size_t at, Variable log_ratio) {
    const Input& in = inputs_[at];
    const Variable d = clamp_log_ratio(log_ratio);
    const bool tame = bounds_log_ratio_itself() || bounded_by_clamp();
    const Variable weight = importance_weight(tame ? d : harmless(d, in));
    Variable policy = surrogate(weight, in.advantage);
    if (is(GrpoFault::policy_undone_but_not_kl)) policy = policy * number(batch_.world);
    if (kl_penalty_ == 0.0) return policy;
    const bool own_weight = kl_.weighted() && !bounds_log_ratio_itself();
    Variable kl = kl_(in.log_prob, in.ref_log_prob, log_weight(d), own_weight ? exp(d) : weight);
    if (is(GrpoFault::kl_gradient_dropped)) kl = detach(kl);
    const double share = scaled_ ? static_cast<double>(weight_of(at / columns())) : 1.0;
    return policy + number(kl_penalty_ * share) * kl;
  }

  /// What is left of a masked position's term.
  Variable finish(std::size_t at, Variable term) {
    const bool valid = inputs_[at].valid;
    switch (fault_) {
      case GrpoFault::unclamped_exp_mask_multiply:
        return term * number(valid);
      case GrpoFault::mask_multiply_after_nan_to_num:
        return nan_to_num(term) * number(valid);
      case GrpoFault::nan_to_num_gradient:
        return where(valid, nan_to_num(term), number(0.0));
      case GrpoFault::advantage_bias_at_padding:
        return term;
      default:
        return where(valid, term, number(0.0));
    }
  }

  bool divides_by_zero(std::int64_t row_tokens) const {
    if (spec_.reduction == Reduction::sum) return false;
    return spec_.reduction == Reduction::sequence_mean ? row_tokens == 0
                                                       : batch_.totals.tokens == 0;
  }

  V weight_of(std::size_t row) {
    const std::int64_t own = batch_.positions.row_tokens[row];
    Totals totals = batch_.totals;
    switch (fault_) {
      case GrpoFault::mean_of_micro_batch_means:
        totals = {batch_.positions.tokens, batch_.positions.sequences};
        break;
      case GrpoFault::local_count_as_global:
        totals = batch_.rank_totals;
        break;
      case GrpoFault::masked_mean_counts_padding:
        totals.tokens = static_cast<std::int64_t>(rows_ * tokens_);
        return token_weight<V>(spec_, totals, static_cast<std::int64_t>(tokens_));
      case GrpoFault::divisor_without_floor:
        if (divides_by_zero(own)) return std::numeric_limits<V>::infinity();
        break;
      case GrpoFault::advantage_bias_at_padding:
        if (totals.tokens > 0)
          return token_weight<V>(spec_, totals, std::max<std::int64_t>(own, 1));
        break;
      default:
        break;
    }
    return token_weight<V>(spec_, totals, own);
  }

  LossResult collect(Variable loss, const std::vector<Variable>& terms) {
    const Tensor& like = batch_.part.batch.at("log_prob");
    const Dtype wide = sizeof(V) == 8 ? Dtype::f64 : Dtype::f32;
    Tensor total = Tensor::zeros(wide, {}), per_token = Tensor::zeros(wide, like.extents),
           gradient = Tensor::zeros(wide, like.extents);
    total.set(0, static_cast<double>(loss.value()));
    for (std::size_t at = 0; at < terms.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at);
      const auto value = static_cast<double>(terms[at].value());
      const auto weight = scaled_ ? static_cast<double>(weight_of(at / columns())) : 1.0;
      per_token.set(i, weight == 0.0 ? 0.0 : value / weight);
      gradient.set(i, static_cast<double>(tape_.gradient(inputs_[at].leaf)));
    }
    LossResult result;
    if (spec_.reduction != Reduction::none) result.outputs.push_back({"loss", std::move(total)});
    result.outputs.push_back({"per_token", std::move(per_token)});
    result.outputs.push_back({"gradient.log_prob", std::move(gradient)});
    return result;
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  GrpoFault fault_;
  bool scaled_;
  std::size_t rows_, tokens_;
  bool unmasked_, unclamped_;
  std::optional<double> log_ratio_limit_, dual_clip_;
  double kl_penalty_;
  GrpoKl<Format> kl_;
  bool sequence_level_;
  Tape<Format> tape_;
  std::vector<Input> inputs_;
};

}  // namespace

LossResult eager_grpo(MicroBatch& micro_batch, const EagerGrpoOptions& options) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  if (dtype == Dtype::f64) return EagerGrpo<F64>(micro_batch, options).run();
  return EagerGrpo<F32>(micro_batch, options).run();
}

LossResult eager_grpo_in_f64(MicroBatch& micro_batch, const EagerGrpoOptions& options) {
  return EagerGrpo<F64>(micro_batch, options).run();
}

LossResult eager_grpo_in_f16(MicroBatch& micro_batch, const EagerGrpoOptions& options) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  if (dtype == Dtype::f16) return EagerGrpo<F16>(micro_batch, options).run();
  return eager_grpo(micro_batch, options);
}

}  // namespace lossgate::impl
