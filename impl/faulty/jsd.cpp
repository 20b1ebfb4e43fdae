// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/jsd.h"

#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/jsd_eager.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

Implementation implementation(std::string_view loss, std::string name,
                              const EagerJsdOptions& options, const Trainer& trainer = {}) {
  const bool linear = loss == "linear_jsd";
  const Step step = [options, linear](MicroBatch& micro_batch) {
    return linear ? eager_linear_jsd(micro_batch, options) : eager_jsd(micro_batch, options);
  };
  return eager_implementation(
      {.loss = loss, .source = {"impl/faulty/jsd_eager.cpp", 1}, .form = kDivergenceForm},
      std::move(name), step, trainer);
}

Implementation faulty(std::string_view loss, std::string name, const EagerJsdOptions& options,
                      Fault fault, const Trainer& trainer = {}) {
  return with_fault(implementation(loss, std::move(name), options, trainer), std::move(fault));
}

/// Faults in logarithms and masks.
void add_value_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("jsd", "log_of_mixture_underflow",
                       {.fault = JsdFault::log_of_mixture_underflow},
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/issues/1453",
                        .cause = "logarithm of an underflow",
                        .trigger = "0 < beta < 1 and a token that both models hold for impossible",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("jsd", "infinite_logits_times_zero",
                       {.fault = JsdFault::infinite_logits_times_zero},
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/issues/769",
                        .cause = "zero times infinity",
                        .trigger = "a logit of -infinity on both sides",
                        .killers = {"finite_forward", "finite_backward"}}));
  for (const char* loss : {"jsd", "linear_jsd"}) {
    all.push_back(
        faulty(loss, "masked_multiply", {.fault = JsdFault::masked_multiply},
               {.twin = "eager",
                .thread = "https://github.com/huggingface/trl/pull/5407",
                .cause = "non-finite value behind a mask",
                .trigger = "an infinity or NaN at a masked position",
                .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  }
  all.push_back(faulty("jsd", "temperature_forgotten_in_gradient",
                       {.fault = JsdFault::temperature_forgotten_in_gradient},
                       {.twin = "eager",
                        .thread = "https://arxiv.org/abs/1503.02531",
                        .cause = "option misread",
                        .trigger = "a temperature other than 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("linear_jsd", "weight_gradient_accumulated_in_bf16",
                       {.fault = JsdFault::weight_gradient_accumulated_in_bf16},
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/blob/main/src/"
                                  "liger_kernel/chunked_loss/jsd_loss.py",
                        .cause = "narrow arithmetic",
                        .trigger = "valid tokens whose gradients differ",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("linear_jsd", "logits_in_bf16", {.fault = JsdFault::logits_in_bf16},
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/issues/1432",
                        .cause = "narrow arithmetic",
                        .trigger = "valid tokens: logits are stored before they are widened",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("linear_jsd", "upstream_in_hidden_gradient_alone",
                       {.fault = JsdFault::upstream_in_hidden_gradient_alone},
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/torchtitan/pull/3250",
                        .cause = "wrong upstream factor",
                        .trigger = "an upstream gradient other than 1",
                        .killers = {"reference_agreement"}}));
}

/// Faults in what a token counts.
void add_reduction_faults(std::vector<Implementation>& all) {
  constexpr const char* kNumItems = "https://github.com/huggingface/transformers/pull/34191";
  all.push_back(faulty("jsd", "local_token_mean", {.fault = JsdFault::local_token_mean},
                       {.twin = "eager",
                        .thread = kNumItems,
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  all.push_back(faulty("jsd", "mixed_means_averaged",
                       {.fault = JsdFault::mixed_means_averaged, .two_buffers = true},
                       {.twin = "mixed_buffer",
                        .thread = "https://github.com/huggingface/trl/pull/5407",
                        .cause = "mean of means",
                        .trigger = "a token mean over two buffers of unequal token counts",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("jsd", "batchmean_by_rows", {.fault = JsdFault::batchmean_by_rows},
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/4105",
                        .cause = "wrong divisor",
                        .trigger = "a token mean and more tokens than rows",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("jsd", "num_items_ignored", {.fault = JsdFault::num_items_ignored},
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6006",
                        .cause = "wrong divisor",
                        .trigger = "sum_over_items",
                        .killers = {"reference_agreement"}}));
}

}  // namespace

std::vector<Implementation> jsd_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("jsd", "eager", {}));
  all.push_back(implementation("jsd", "eager_joined", {.fault = JsdFault::joined}));
  all.push_back(implementation("jsd", "mixed_buffer", {.two_buffers = true}));
  all.push_back(implementation("linear_jsd", "eager", {}));
  add_value_faults(all);
  add_reduction_faults(all);
  return all;
}

}  // namespace lossgate::impl
