// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/entropy_bonus.h"

#include <cmath>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/faulty_softmax.h"
#include "impl/faulty/position_program.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class EntropyFault {
  none,
  difference,  ///< none: the other form
  attached,    ///< none: the maximum that is subtracted has a history
  exp_without_max,
  log_of_probability_plus_epsilon,
  p_log_p_nan,
  entries_repaired,
  normaliser_detached,
  wrong_sign,
  mask_multiply,
  mean_over_all_positions,
  mean_over_no_token,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerEntropyBonus {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerEntropyBonus(MicroBatch& batch, EntropyFault fault)
      : batch_(batch),
        fault_(fault),
        coefficient_(PositionBatch<Format>(batch).option("coefficient")) {}

  LossResult run() {
    return run_by_row<Format>(batch_,
                              {.leaf = "logits",
                               .multiplies_mask = is(EntropyFault::mask_multiply),
                               .local_means = is(EntropyFault::mean_of_micro_batch_means),
                               .counts_masked = is(EntropyFault::mean_over_all_positions),
                               .divides_by_zero = is(EntropyFault::mean_over_no_token)},
                              [this](const Row& x, std::int64_t) { return term_of(x); });
  }

 private:
  bool is(EntropyFault fault) const { return fault_ == fault; }

  Variable term_of(const Row& x) const {
    // Of large logits a difference may overflow, whatever multiplies it.
    if (is(EntropyFault::difference) && coefficient_ == V(0)) return x[0].tape().constant(V(0));
    const Variable h = is(EntropyFault::difference) ? difference(x) : -negative_entropy(x);
    return h * h.tape().constant(is(EntropyFault::wrong_sign) ? coefficient_ : -coefficient_);
  }

  /// An impossible token, or one whose probability underflows, adds nothing.
  bool selects() const {
    return !is(EntropyFault::p_log_p_nan) && !is(EntropyFault::entries_repaired);
  }

  /// sum p log p
  Variable negative_entropy(const Row& x) const {
    Row terms;
    for (const Variable& l : log_probs(x)) {
      const Variable p = exp(l);
      if (selects() && p.value() == 0) continue;
      terms.push_back(is(EntropyFault::entries_repaired) ? nan_to_num(p * l) : p * l);
    }
    return x[0].tape().sum(terms);
  }

  Row log_probs(const Row& x) const {
    if (is(EntropyFault::attached)) return attached_log_softmax(x);
    if (is(EntropyFault::exp_without_max)) return log_softmax_without_max(x);
    if (is(EntropyFault::log_of_probability_plus_epsilon)) return log_of_softmax(x, V(1e-8));
    return is(EntropyFault::normaliser_detached) ? of_constant_sum(x) : log_softmax(x);
  }

  /// The same numbers as log_softmax(x).
  Row of_constant_sum(const Row& x) const {
    const Variable largest = detached_maximum(x);
    Row result;
    for (const Variable& logit : x) result.push_back(logit - largest);
    const Variable sum = detach(log_sum_exp(result));
    for (Variable& shifted : result) shifted = shifted - sum;
    return result;
  }

  /// logsumexp(x) - sum p x, with p of a softmax of its own: exp(x - logsumexp(x)) is 1 of each of
  /// several equal logits that are large, and their sum overflows.
  Variable difference(const Row& x) const {
    const Row log_prob = log_softmax(x);
    Row terms;
    for (std::size_t v = 0; v < x.size(); ++v) {
      const Variable p = exp(log_prob[v]);
      if (p.value() != 0) terms.push_back(p * x[v]);
    }
    return log_sum_exp(x) - x[0].tape().sum(terms);
  }

  MicroBatch& batch_;
  EntropyFault fault_;
  V coefficient_;
};

Implementation implementation(std::string name, EntropyFault fault, std::string_view form,
                              const Trainer& trainer = {}) {
  if (fault == EntropyFault::exp_without_max) form = "";
  return eager_implementation(
      {.loss = "entropy_bonus", .source = {"impl/faulty/entropy_bonus.cpp", 1}, .form = form},
      std::move(name), step_of<EagerEntropyBonus>(fault), trainer);
}

Implementation faulty(std::string name, EntropyFault fault, Fault why,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, kSoftmaxForm, trainer), std::move(why));
}

/// Faults in the entropy of a position.
void add_entropy_faults(std::vector<Implementation>& all) {
  constexpr const char* kNotANumber = "https://github.com/huggingface/trl/issues/7221";
  constexpr const char* kPaper = "https://arxiv.org/abs/1602.01783";
  all.push_back(faulty("exp_without_max", EntropyFault::exp_without_max,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/pytorch/issues/100775",
                        .cause = "exp of an unshifted logit",
                        .trigger = "a logit above 88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("log_of_probability_plus_epsilon",
                       EntropyFault::log_of_probability_plus_epsilon,
                       {.twin = "eager",
                        .thread = "https://github.com/hpcaitech/ColossalAI/pull/6407",
                        .cause = "epsilon in a logarithm",
                        .trigger = "a token whose probability is not far above it",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("p_log_p_nan", EntropyFault::p_log_p_nan,
                       {.twin = "eager",
                        .thread = kNotANumber,
                        .cause = "zero times infinity",
                        .trigger = "a logit of -infinity at a valid position",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("entries_repaired", EntropyFault::entries_repaired,
                       {.twin = "eager",
                        .thread = kNotANumber,
                        .cause = "value repaired, gradient not",
                        .trigger = "a logit of -infinity: nan_to_num mends the forward alone",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("normaliser_detached", EntropyFault::normaliser_detached,
                       {.twin = "eager",
                        .thread = "https://github.com/ByteDance-Seed/VeOmni/pull/720",
                        .cause = "dead signal",
                        .trigger = "any: the gradient p (log p + 1) has the entropy missing",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("wrong_sign", EntropyFault::wrong_sign,
                       {.twin = "eager",
                        .thread = kPaper,
                        .cause = "wrong sign",
                        .trigger = "a coefficient that is not 0",
                        .killers = {"reference_agreement", "bounds_hold"}}));
}

}  // namespace

std::vector<Implementation> entropy_bonus_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", EntropyFault::none, kSoftmaxForm));
  all.push_back(
      implementation("eager_difference", EntropyFault::difference, "logsumexp(x) - sum p x"));
  all.push_back(implementation("eager_attached", EntropyFault::attached, ""));
  add_entropy_faults(all);
  all.push_back(
      faulty("mask_multiply", EntropyFault::mask_multiply,
             {.twin = "eager",
              .thread = "https://github.com/NovaSky-AI/SkyRL/pull/2259",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a masked position",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_over_all_positions", EntropyFault::mean_over_all_positions,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/4105",
                        .cause = "padding counted",
                        .trigger = "a token mean, and a masked position",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_over_no_token", EntropyFault::mean_over_no_token,
                       {.twin = "eager",
                        .thread = "https://github.com/unslothai/unsloth-zoo/pull/1286",
                        .cause = "empty divisor",
                        .trigger = "a step without a valid position",
                        .killers = {"empty_is_zero", "finite_forward"}}));
  all.push_back(faulty("mean_of_micro_batch_means", EntropyFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  return all;
}

}  // namespace lossgate::impl
