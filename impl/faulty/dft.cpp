// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/dft.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/faulty_softmax.h"
#include "impl/faulty/position_program.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class DftFault {
  none,
  difference,  ///< none: the other form
  gradient_through_probability,
  probability_in_bf16,
  log_of_probability,
  zero_times_infinity,
  mask_multiply,
  mean_over_no_token,
  mean_of_micro_batch_means,
};

template <class Format>
class EagerDft {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerDft(MicroBatch& batch, DftFault fault) : batch_(batch), fault_(fault) {}

  LossResult run() {
    return run_by_row<Format>(batch_,
                              {.leaf = "logits",
                               .multiplies_mask = is(DftFault::mask_multiply),
                               .local_means = is(DftFault::mean_of_micro_batch_means),
                               .divides_by_zero = is(DftFault::mean_over_no_token)},
                              [this](const Row& x, std::int64_t at) { return term_of(x, at); });
  }

 private:
  bool is(DftFault fault) const { return fault_ == fault; }

  /// -p l
  Variable term_of(const Row& x, std::int64_t at) const {
    const std::int64_t label = batch_.part.batch.at("label").integer_at(at);
    const Variable l = log_prob(x, static_cast<std::size_t>(std::max<std::int64_t>(label, 0)));
    const Variable p = probability(l);
    // An impossible label adds nothing.
    const bool selects = !is(DftFault::zero_times_infinity) && !is(DftFault::log_of_probability);
    return selects && is_minus_infinity(l) ? l.tape().constant(V(0)) : p * -l;
  }

  Variable log_prob(const Row& x, std::size_t taken) const {
    if (is(DftFault::difference)) return x[taken] - log_sum_exp(x);
    if (is(DftFault::log_of_probability)) return log_of_softmax(x, V(0))[taken];
    return log_softmax(x)[taken];
  }

  Variable probability(Variable l) const {
    const Variable p = exp(l);
    if (is(DftFault::gradient_through_probability)) return p;
    if (!is(DftFault::probability_in_bf16)) return detach(p);
    const double narrow = round_to(Dtype::bf16, static_cast<double>(p.value()));
    return p.tape().constant(static_cast<V>(narrow));
  }

  MicroBatch& batch_;
  DftFault fault_;
};

Implementation implementation(std::string name, DftFault fault = DftFault::none,
                              const Trainer& trainer = {}) {
  const bool difference = fault == DftFault::difference;
  return eager_implementation({.loss = "dft",
                               .source = {"impl/faulty/dft.cpp", 1},
                               .form = difference ? "x - logsumexp(x)" : kSoftmaxForm},
                              std::move(name), step_of<EagerDft>(fault), trainer);
}

Implementation faulty(std::string name, DftFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults of the probability.
void add_probability_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("gradient_through_probability", DftFault::gradient_through_probability,
                       {.twin = "eager",
                        .thread = "https://github.com/modelscope/twinkle/pull/291",
                        .cause = "gradient through what is constant",
                        .trigger = "a label that is not certain: of the gradient 1 + log p is left",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("probability_in_bf16", DftFault::probability_in_bf16,
                       {.twin = "eager",
                        .thread = "https://github.com/modelscope/ms-swift/blob/main/swift/trainers/"
                                  "utils.py",
                        .cause = "narrow arithmetic",
                        .trigger = "a probability of more than eight bits",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("log_of_probability", DftFault::log_of_probability,
                       {.twin = "eager",
                        .thread = "https://github.com/harvardnlp/annotated-transformer/issues/109",
                        .cause = "logarithm of an underflow",
                        .trigger = "a label 104 nats below the likeliest token (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("zero_times_infinity", DftFault::zero_times_infinity,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/3877",
                        .cause = "zero times infinity",
                        .trigger = "a label of logit -infinity",
                        .killers = {"finite_forward"}}));
}

/// Faults in which positions count, and how much.
void add_position_faults(std::vector<Implementation>& all) {
  constexpr const char* kAxolotl = "https://github.com/axolotl-ai-cloud/axolotl/pull/3360";
  all.push_back(
      faulty("mask_multiply", DftFault::mask_multiply,
             {.twin = "eager",
              .thread = kAxolotl,
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a position of label -100",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_over_no_token", DftFault::mean_over_no_token,
                       {.twin = "eager",
                        .thread = kAxolotl,
                        .cause = "empty divisor",
                        .trigger = "a step whose labels are all -100",
                        .killers = {"empty_is_zero", "finite_forward"}}));
  all.push_back(faulty("mean_of_micro_batch_means", DftFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/yongliang-wu/DFT/issues/27",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> dft_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(implementation("eager_difference", DftFault::difference));
  add_probability_faults(all);
  add_position_faults(all);
  return all;
}

}  // namespace lossgate::impl
