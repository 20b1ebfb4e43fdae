// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/cross_entropy.h"

#include <string>
#include <utility>

#include "impl/faulty/cross_entropy_eager.h"
#include "impl/faulty/eager.h"
#include "impl/faulty/grad_mode.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

Step eager(CrossEntropyFault fault) {
  return [fault](MicroBatch& batch) { return eager_cross_entropy(batch, fault); };
}

Implementation implementation(std::string name, CrossEntropyFault fault, std::string_view form,
                              const Trainer& trainer = {}) {
  EagerProgram program{
      .loss = "cross_entropy", .source = {"impl/faulty/cross_entropy_eager.cpp", 1}, .form = form};
  if (fault == CrossEntropyFault::exp_without_max) program.form = "";
  if (fault == CrossEntropyFault::online_max_first_tile) program.sums = SumOrder::online;
  return eager_implementation(program, std::move(name), eager(fault), trainer);
}

Implementation faulty(std::string name, CrossEntropyFault fault, Fault why,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, kSoftmaxForm, trainer), std::move(why));
}

/// Faults in logarithms and probabilities.
void add_softmax_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("exp_without_max", CrossEntropyFault::exp_without_max,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/pytorch/issues/100775",
                        .cause = "exp of an unshifted logit",
                        .trigger = "a logit above 88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("log_of_probability", CrossEntropyFault::log_of_probability,
                       {.twin = "eager",
                        .thread = "https://github.com/harvardnlp/annotated-transformer/issues/109",
                        .cause = "logarithm of an underflow",
                        .trigger = "a taken token 104 nats below the likeliest (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("log_of_probability_plus_epsilon",
                       CrossEntropyFault::log_of_probability_plus_epsilon,
                       {.twin = "eager",
                        .thread = "https://github.com/hpcaitech/ColossalAI/pull/6407",
                        .cause = "epsilon in a logarithm",
                        .trigger = "an unlikely taken token",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("online_max_first_tile", CrossEntropyFault::online_max_first_tile,
                       {.twin = "eager",
                        .thread = "https://github.com/Dao-AILab/flash-attention/issues/1930",
                        .cause = "infinity minus infinity",
                        .trigger = "a first tile of logits that are all -infinity",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("probability_in_bf16", CrossEntropyFault::probability_in_bf16,
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/commit/be1cdc17",
                        .cause = "narrow arithmetic",
                        .trigger = "a likely taken token: p is rounded before it meets the 1",
                        .killers = {"reference_agreement"}}));
}

/// Faults in what is added to the cost of the taken token.
void add_term_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("smoothing_at_zero", CrossEntropyFault::smoothing_at_zero,
                       {.twin = "eager",
                        .thread = "https://github.com/candle-org/MindAct/pull/1633",
                        .cause = "zero times infinity",
                        .trigger = "a logit of -infinity and no smoothing",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("smoothing_over_others", CrossEntropyFault::smoothing_over_others,
                       {.twin = "eager",
                        .thread = "https://arxiv.org/abs/1512.00567",
                        .cause = "option misread",
                        .trigger = "smoothing: the other V - 1 tokens share all of it",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("smoothing_of_ignored", CrossEntropyFault::smoothing_of_ignored,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/pytorch/issues/73205",
                        .cause = "masked data leaks",
                        .trigger = "smoothing, and a label of -100",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(faulty("z_loss_without_gradient", CrossEntropyFault::z_loss_without_gradient,
                       {.twin = "eager",
                        .thread = "https://github.com/allenai/OLMo-core/pull/702",
                        .cause = "dead signal",
                        .trigger = "a z-loss: it is in the loss and not in the gradient",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("z_loss_of_ignored", CrossEntropyFault::z_loss_of_ignored,
                       {.twin = "eager",
                        .thread = "https://github.com/allenai/OLMo-core/pull/702",
                        .cause = "masked data leaks",
                        .trigger = "a z-loss, and a label of -100",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(faulty("terms_in_bf16", CrossEntropyFault::terms_in_bf16,
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/blob/main/src/"
                                  "liger_kernel/ops/cross_entropy.py",
                        .cause = "narrow arithmetic",
                        .trigger = "valid tokens: their costs are stored before they are summed",
                        .killers = {"reference_agreement"}}));
}

/// Faults in which positions count, and how much.
void add_position_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("gradient_of_ignored", CrossEntropyFault::gradient_of_ignored,
                       {.twin = "eager",
                        .thread = "https://github.com/PaddlePaddle/Paddle/pull/28622",
                        .cause = "gradient at a masked position",
                        .trigger = "a label of -100",
                        .killers = {"masked_positions_inert"}}));
  all.push_back(faulty("ignored_label_as_first_token",
                       CrossEntropyFault::ignored_label_as_first_token,
                       {.twin = "eager",
                        .thread = "https://github.com/voidism/DiffCSE/issues/25",
                        .cause = "masked data leaks",
                        .trigger = "a label of -100",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(
      faulty("mask_multiply", CrossEntropyFault::mask_multiply,
             {.twin = "eager",
              .thread = "https://github.com/NVIDIA-NeMo/RL/pull/4120",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a position of label -100",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("mean_over_all_positions", CrossEntropyFault::mean_over_all_positions,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/4105",
                        .cause = "padding counted",
                        .trigger = "a token mean, and a label of -100",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_over_no_token", CrossEntropyFault::mean_over_no_token,
                       {.twin = "eager",
                        .thread = "https://github.com/meta-pytorch/torchtune/issues/2341",
                        .cause = "empty divisor",
                        .trigger = "a step whose labels are all -100",
                        .killers = {"empty_is_zero", "finite_forward"}}));
  all.push_back(faulty("labels_shifted_twice", CrossEntropyFault::labels_shifted_twice,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/transformers/issues/47394",
                        .cause = "off by one position",
                        .trigger = "any labels: each logit meets the token after its own",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_of_micro_batch_means", CrossEntropyFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/transformers/pull/34191",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

/// Faults of a kernel that makes the gradient in its forward.
void add_kernel_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("upstream_ignored", CrossEntropyFault::upstream_ignored,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/torchtitan/pull/3250",
                        .cause = "wrong upstream factor",
                        .trigger = "an upstream gradient other than 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("gradient_of_sum", CrossEntropyFault::gradient_of_sum,
                       {.twin = "eager",
                        .thread = "https://github.com/ROCm/aiter/pull/5165",
                        .cause = "wrong divisor",
                        .trigger = "a mean: the loss is divided and its gradient is not",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("strides_ignored", CrossEntropyFault::strides_ignored,
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA/TransformerEngine/issues/2734",
                        .cause = "strides ignored",
                        .trigger = "logits that are a transposed view, or have padded rows",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("gradient_over_logits", CrossEntropyFault::gradient_over_logits,
                       {.twin = "eager",
                        .thread = "https://github.com/unslothai/unsloth/issues/5002",
                        .cause = "input overwritten",
                        .trigger = "any logits: the gradient lies where they lay",
                        .killers = {"inputs_not_mutated"}}));
  all.push_back(with_fault(
      eager_implementation(
          {.loss = "cross_entropy", .source = {"impl/faulty/grad_mode.h", 1}, .form = kSoftmaxForm},
          "zero_in_evaluation", without_loss_in_evaluation(eager(CrossEntropyFault::none))),
      {.twin = "eager",
       .thread = "https://github.com/linkedin/Liger-Kernel/issues/507",
       .cause = "depends on requires_grad",
       .trigger = "logits that need no gradient, and a loss that is not 0",
       .killers = {"grad_mode_invariance"}}));
  all.push_back(faulty("labels_in_16_bits", CrossEntropyFault::labels_in_16_bits,
                       fault_of_length("https://github.com/huggingface/transformers/issues/2825",
                                       "a label above 65535")));
}

}  // namespace

std::vector<Implementation> cross_entropy_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", CrossEntropyFault::none, kSoftmaxForm));
  all.push_back(
      implementation("eager_difference", CrossEntropyFault::difference, kTargetDifferenceForm));
  all.push_back(implementation("eager_attached", CrossEntropyFault::attached, ""));
  add_softmax_faults(all);
  add_term_faults(all);
  add_position_faults(all);
  add_kernel_faults(all);
  return all;
}

}  // namespace lossgate::impl
