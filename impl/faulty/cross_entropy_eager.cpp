// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/cross_entropy_eager.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "impl/faulty/faulty_softmax.h"
#include "impl/faulty/moved_field.h"
#include "impl/faulty/position_program.h"
#include "impl/faulty/strided.h"

namespace lossgate::impl {
namespace {

using Fault = CrossEntropyFault;

bool reads_masked(Fault fault) {
  return fault == Fault::smoothing_of_ignored || fault == Fault::z_loss_of_ignored ||
         fault == Fault::gradient_of_ignored || fault == Fault::ignored_label_as_first_token;
}

template <class Format>
class EagerCrossEntropy {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerCrossEntropy(MicroBatch& batch, Fault fault)
      : batch_(batch),
        in_(batch),
        fault_(fault),
        vocab_(static_cast<std::size_t>(batch.part.shape[Axis::vocab])),
        smoothing_(in_.option("label_smoothing")),
        z_loss_(in_.option("z_loss")) {}

  LossResult run() {
    return run_by_row<Format>(batch_,
                              {.leaf = "logits",
                               .multiplies_mask = is(Fault::mask_multiply),
                               .reads_masked = reads_masked(fault_),
                               .local_means = is(Fault::mean_of_micro_batch_means),
                               .counts_masked = is(Fault::mean_over_all_positions),
                               .divides_by_zero = is(Fault::mean_over_no_token),
                               .ignores_upstream = is(Fault::upstream_ignored),
                               .gradient_of_sum = is(Fault::gradient_of_sum)},
                              [this](const Row& x, std::int64_t at) { return term_of(x, at); });
  }

 private:
  bool is(Fault fault) const { return fault_ == fault; }
  bool valid(std::int64_t at) const {
    return batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  static Variable number(Variable like, V x) { return like.tape().constant(x); }

  Variable term_of(const Row& x, std::int64_t at) const {
    std::int64_t label = batch_.part.batch.at("label").integer_at(at);
    if (is(Fault::labels_in_16_bits)) label = static_cast<std::uint16_t>(label);
    const auto taken = static_cast<std::size_t>(
        std::clamp<std::int64_t>(label, 0, static_cast<std::int64_t>(vocab_) - 1));
    const Row l = log_probs(x);
    if (!valid(at)) return term_of_masked(x, l, taken);
    Variable term = is(Fault::difference) ? difference(x, taken) : cost(l, taken);
    if (is(Fault::probability_in_bf16)) term = with_rounded_probabilities(term, x, l, taken);
    term = z_loss(x, term);
    if (is(Fault::terms_in_bf16)) {
      const auto stored = static_cast<V>(round_to(Dtype::bf16, static_cast<double>(term.value())));
      if (std::isfinite(stored)) term = term + number(term, stored - term.value());
    }
    return term;
  }

  /// Read by variants that should not.
  Variable term_of_masked(const Row& x, const Row& l, std::size_t taken) const {
    const Variable zero = number(x[0], 0);
    if (is(Fault::smoothing_of_ignored)) return smoothed(l, taken);
    if (is(Fault::z_loss_of_ignored)) return z_loss(x, zero);
    const Variable term = cost(l, taken);
    return is(Fault::gradient_of_ignored) ? term - detach(term) : term;
  }

  Row log_probs(const Row& x) const {
    switch (fault_) {
      case Fault::attached:
        return attached_log_softmax(x);
      case Fault::exp_without_max:
        return log_softmax_without_max(x);
      case Fault::online_max_first_tile:
        return online_log_softmax(x, 2);
      case Fault::log_of_probability:
        return log_of_softmax(x, V(0));
      case Fault::log_of_probability_plus_epsilon:
        return log_of_softmax(x, V(1e-8));
      default:
        return log_softmax(x);
    }
  }

  /// What each token has of the target beside the taken one's share.
  V share() const {
    const bool others = is(Fault::smoothing_over_others);
    return smoothing_ / static_cast<V>(vocab_ - (others ? 1 : 0));
  }

  /// -sum t l
  Variable cost(const Row& l, std::size_t taken) const {
    const Variable hard = -(l[taken] * number(l[0], V(1) - smoothing_));
    const bool smooths = smoothing_ != V(0) || is(Fault::smoothing_at_zero);
    if (!smooths) return hard;
    return smoothing_ == V(1) ? smoothed(l, taken) : hard + smoothed(l, taken);
  }

  Variable smoothed(const Row& x, std::size_t taken) const {
    Row entries;
    for (std::size_t v = 0; v < vocab_; ++v) {
      if (is(Fault::smoothing_over_others) && v == taken) continue;
      entries.push_back(x[v] * number(x[v], -share()));
    }
    return x[0].tape().sum(entries);
  }

  /// logsumexp(x) - sum t x
  Variable difference(const Row& x, std::size_t taken) const {
    const Variable whole = log_sum_exp(x);
    const Variable hard = (whole - x[taken]) * number(whole, V(1) - smoothing_);
    if (smoothing_ == V(0)) return hard;
    const Variable soft = whole * number(whole, smoothing_) + smoothed(x, taken);
    return smoothing_ == V(1) ? soft : hard + soft;
  }

  Variable z_loss(const Row& x, Variable term) const {
    if (z_loss_ == V(0)) return term;
    Variable whole = log_sum_exp(x);
    if (is(Fault::z_loss_without_gradient)) whole = detach(whole);
    return term + (whole * number(whole, z_loss_)) * whole;
  }

  /// The same value with the gradient p - t, of which p was stored in bf16 before the difference.
  Variable with_rounded_probabilities(Variable term, const Row& x, const Row& l,
                                      std::size_t taken) const {
    Row terms;
    for (std::size_t v = 0; v < vocab_; ++v) {
      const double p = round_to(Dtype::bf16, static_cast<double>(std::exp(l[v].value())));
      const V target = share() + (v == taken ? V(1) - smoothing_ : V(0));
      const Variable slope = number(x[v], static_cast<V>(p) - target);
      if (std::isfinite(x[v].value())) terms.push_back((x[v] - detach(x[v])) * slope);
    }
    return detach(term) + x[0].tape().sum(terms);
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  Fault fault_;
  std::size_t vocab_;
  V smoothing_, z_loss_;
};

}  // namespace

LossResult eager_cross_entropy(MicroBatch& micro_batch, CrossEntropyFault fault) {
  const Step step = step_of<EagerCrossEntropy>(fault);
  if (fault == CrossEntropyFault::labels_shifted_twice) {
    return with_moved_field(step, micro_batch, "label", -1, static_cast<double>(kIgnoreLabel));
  }
  if (fault == CrossEntropyFault::strides_ignored) {
    return with_field_by_strides_of(step, "logits")(micro_batch);
  }
  LossResult result = step(micro_batch);
  if (fault == CrossEntropyFault::gradient_over_logits) {
    Tensor& logits = micro_batch.part.batch.at("logits");
    const Tensor& gradient = *result.find("gradient.logits");
    for (std::int64_t i = 0; i < logits.size(); ++i) logits.set(i, gradient.at(i));
  }
  return result;
}

}  // namespace lossgate::impl
