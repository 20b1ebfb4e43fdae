// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/kl_penalty_eager.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/kl_size.h"
#include "impl/faulty/tape_functions.h"
#include "impl/faulty/tape_result.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Format>
class EagerKl {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerKl(MicroBatch& micro_batch, const EagerKlOptions& options)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        fault_(options.fault),
        form_(options.form),
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        kind_(spec_.choice("kl_estimator")),
        asked_{.log_ratio = limit_of(spec_, "log_ratio_clamp"),
               .input = limit_of(spec_, "kl_input_clamp"),
               .output = limit_of(spec_, "kl_output_clamp")},
        limits_(asked_),
        weighted_(spec_.number("kl_weighted") != 0.0),
        straight_(spec_.number("kl_straight_through") != 0.0),
        unmasked_(is(KlFault::k3_unclamped_mask_multiply)),
        naive_(kind_ == "k3" && is(KlFault::k3_output_clamp_only)) {
    if (naive_) limits_.input = std::nullopt;
  }

  LossResult run() {
    std::vector<Variable> forward, backward;
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      const Token token = token_at(at);
      const Variable weight = number(weight_of(at / tokens_));
      terms_.push_back(token.value);
      forward.push_back(token.value * weight);
      if (straight_) backward.push_back(token.differentiated * weight);
    }
    const Variable loss = tape_.sum(forward);
    const Variable root = straight_ ? tape_.sum(backward) : loss;
    tape_.backward(root, static_cast<V>(batch_.part.upstream));
    return result_by_position(tape_, loss, terms_, leaves_, {rows_, tokens_}, "gradient.log_prob");
  }

 private:
  struct Limits {
    std::optional<double> log_ratio, input, output;
  };

  struct Token {
    Variable value;
    Variable differentiated;  ///< what the gradient is taken of; its value is of no account
  };

  bool is(KlFault fault) const { return fault_ == fault; }
  Variable number(double x) { return tape_.constant(static_cast<V>(x)); }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  V weight_of(std::int64_t row) const {
    return token_weight<V>(spec_, batch_.totals,
                           batch_.positions.row_tokens[static_cast<std::size_t>(row)]);
  }

  Token token_at(std::int64_t at) {
    const bool valid = batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
    if (!valid && !unmasked_) {
      leaves_.push_back(number(0.0));
      return {number(0.0), number(0.0)};
    }
    if (unmasked_) bound(valid);
    const Variable p = tape_.variable(static_cast<V>(field("log_prob").at(at)));
    const Variable r = number(field("ref_log_prob").at(at));
    leaves_.push_back(p);
    const Variable kl = weighted_ ? weighted_estimate(p, r, number(field("old_log_prob").at(at)))
                                  : plain_estimate(p, r);
    Token token{kl, kl};
    if (straight_ && is(KlFault::straight_through_inf_minus_inf)) {
      const Variable x = r - p, half_square = number(0.5) * x * x;
      token.value = token.differentiated = half_square - detach(half_square) + detach(kl);
    } else if (straight_) {
      token = {detach(kl), detach(p - r) * p};
    }
    if (unmasked_) token = {token.value * number(valid), token.differentiated * number(valid)};
    return token;
  }

  /// What is behind the mask is not bounded, as it is multiplied by 0.
  void bound(bool valid) {
    naive_ = kind_ == "k3" && !valid;
    limits_ = naive_ ? Limits{} : asked_;
  }

  Variable input(Variable p, Variable r) {
    const Variable x = r - p;
    if (!limits_.input) return x;
    return clamp(x, static_cast<V>(-*limits_.input), static_cast<V>(*limits_.input));
  }

  Variable bounded(Variable kl) {
    if (!limits_.output) return kl;
    return clamp(kl, static_cast<V>(-*limits_.output), static_cast<V>(*limits_.output));
  }

  Variable plain_estimate(Variable p, Variable r) {
    const Variable x = input(p, r);
    if (const auto decided = decided_by_clamp(x, 0.0)) return number(*decided);
    return bounded(estimate(x));
  }

  Variable weighted_estimate(Variable p, Variable r, Variable old) {
    const Variable x = input(p, r), ratio = p - old;
    const Variable d = limits_.log_ratio ? clamp(ratio, static_cast<V>(-*limits_.log_ratio),
                                                 static_cast<V>(*limits_.log_ratio))
                                         : ratio;
    const auto log_weight = static_cast<double>(d.value());
    const bool defined = x.value() == x.value();
    // A token that has become impossible adds nothing, however far the policies are apart.
    if (!naive_ && defined && log_weight == -kInfinity) return number(0.0);
    if (const auto decided = decided_by_clamp(x, log_weight)) return number(*decided);
    const Variable kl = estimate(x), weight = exp(d);
    const bool vanishes = !naive_ && x.value() == V(0) && std::isinf(weight.value());
    if (vanishes) return kind_ == "k1" ? weighed_zero(kl) : number(0.0) * x;
    return bounded(weight * kl);
  }

  /// k1 of exactly 0 times a weight that overflows: the value is 0, the slope is the weight.
  Variable weighed_zero(Variable kl) {
    const Variable most = number(max_finite(Format::kDtype));
    return kl * most * most;
  }

  /// The estimate where it lies behind the output clamp: a constant. NaN decides nothing.
  std::optional<double> decided_by_clamp(Variable x, double log_weight) const {
    if (naive_ || !limits_.output) return std::nullopt;
    const auto at = static_cast<double>(x.value());
    const double log_size = log_of_estimate(kind_, at) + log_weight;
    if (!(log_size > std::log(*limits_.output) + 1e-6)) return std::nullopt;
    const bool negative = kind_ == "k1" && (at > 0.0) != is(KlFault::k1_sign_flipped);
    return negative ? -*limits_.output : *limits_.output;
  }

  Variable estimate(Variable x) {
    if (kind_ == "k1") return is(KlFault::k1_sign_flipped) ? x : -x;
    // Halved before the square can overflow.
    if (kind_ == "k2") return number(0.5) * x * x;
    return is(KlFault::k3_gradient_detached) ? detach(k3(x)) : k3(x);
  }

  Variable k3(Variable x) {
    switch (form_) {
      case K3Form::exp_minus_x_minus_1:
        return exp(x) - x - number(1.0);
      case K3Form::exp_minus_1_minus_x:
        return exp(x) - number(1.0) - x;
      default:
        return expm1(x) - x;
    }
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  KlFault fault_;
  K3Form form_;
  std::int64_t rows_, tokens_;
  std::string kind_;
  Limits asked_, limits_;
  bool weighted_, straight_, unmasked_, naive_;
  Tape<Format> tape_;
  std::vector<Variable> leaves_, terms_;
};

}  // namespace

LossResult eager_kl_penalty(MicroBatch& micro_batch, const EagerKlOptions& options) {
  const Dtype dtype = float_dtype(micro_batch.signature, micro_batch.part);
  const bool stored = options.fault == KlFault::k3_in_storage_format &&
                      micro_batch.part.spec.choice("kl_estimator") == "k3";
  if (stored && dtype == Dtype::f16) return EagerKl<F16>(micro_batch, options).run();
  if (stored && dtype == Dtype::bf16) return EagerKl<BF16>(micro_batch, options).run();
  if (dtype == Dtype::f64) return EagerKl<F64>(micro_batch, options).run();
  return EagerKl<F32>(micro_batch, options).run();
}

}  // namespace lossgate::impl
