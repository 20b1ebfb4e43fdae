// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/log_prob.h"

#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/log_prob_eager.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

Implementation implementation(std::string name, LogProbFault fault, const Trainer& trainer = {}) {
  const Step step = [fault](MicroBatch& micro_batch) { return eager_log_prob(micro_batch, fault); };
  EagerProgram program{
      .loss = "log_prob", .source = {"impl/faulty/log_prob_eager.cpp", 1}, .form = kSoftmaxForm};
  if (fault == LogProbFault::logsumexp_without_max) program.form = "";
  const bool online =
      fault == LogProbFault::online_max_first_tile || fault == LogProbFault::online_max_first_block;
  if (online) program.sums = SumOrder::online;
  return eager_implementation(program, std::move(name), step, trainer);
}

/// Takes a label outside the vocabulary for the nearest one inside.
void check_all_but_values(const LossSignature& signature, const Case& c) {
  check_reduction(signature, c);
  check_options(signature, c);
  check_fields(signature, c);
  check_split(signature, c);
}

Implementation faulty(std::string name, LogProbFault fault, Fault why,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

}  // namespace

std::vector<Implementation> log_prob_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", LogProbFault::none));
  all.push_back(faulty("online_max_first_tile", LogProbFault::online_max_first_tile,
                       {.twin = "eager",
                        .thread = "https://github.com/Dao-AILab/flash-attention/issues/1930",
                        .cause = "infinity minus infinity",
                        .trigger = "a first tile of logits that are all -infinity",
                        .killers = {"finite_forward", "finite_backward"}}));
  Fault of_block = fault_of_length("https://github.com/Dao-AILab/flash-attention/issues/1930",
                                   "a first tile of 16384 logits that are all -infinity");
  of_block.cause = "infinity minus infinity";
  of_block.killers = {"finite_forward", "finite_backward"};
  all.push_back(
      faulty("online_max_first_block", LogProbFault::online_max_first_block, std::move(of_block)));
  all.push_back(faulty("entropy_p_log_p_nan", LogProbFault::entropy_p_log_p,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/7221",
                        .cause = "zero times infinity",
                        .trigger = "a logit of -infinity at a valid position",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("logsumexp_without_max", LogProbFault::logsumexp_without_max,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/pytorch/issues/100775",
                        .cause = "exp of an unshifted logit",
                        .trigger = "a logit above 88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("temperature_twice", LogProbFault::temperature_twice,
                       {.twin = "eager",
                        .thread = "https://github.com/RL-Align/RL-Kernel/pull/86",
                        .cause = "option misread",
                        .trigger = "a temperature other than 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("one_block_of_vocab", LogProbFault::one_block_of_vocab,
                       fault_of_length("https://github.com/unslothai/unsloth/issues/19",
                                       "a vocabulary of more than 65536")));
  all.push_back(
      faulty("odd_vocab_of_one_tier", LogProbFault::odd_vocab_of_one_tier,
             fault_of_length("https://github.com/pytorch/pytorch/issues/147284",
                             "an odd vocabulary between 512 and 1024, after the first row")));
  all.push_back(faulty("label_clamped", LogProbFault::label_clamped,
                       {.twin = "eager",
                        .thread = "https://github.com/axolotl-ai-cloud/axolotl/pull/3767",
                        .cause = "invalid input accepted",
                        .trigger = "a label outside the vocabulary",
                        .killers = {"error_on_invalid"}},
                       {.check = &check_all_but_values}));
  all.push_back(
      faulty("ignored_label_reads_logit", LogProbFault::ignored_label_reads_logit,
             {.twin = "eager",
              .thread = "https://github.com/NVIDIA-NeMo/RL/pull/4120",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a position of label -100",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  return all;
}

}  // namespace lossgate::impl
