// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/value_clip.h"

#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/value_clip_eager.h"

namespace lossgate::impl {
namespace {

constexpr const char* kFormula =
    "https://github.com/openai/baselines/blob/master/baselines/ppo2/model.py";
constexpr const char* kCritic = "https://github.com/NovaSky-AI/SkyRL/pull/925";

Implementation implementation(std::string name, ValueClipFault fault = ValueClipFault::none,
                              const Trainer& trainer = {}) {
  const Step step = [fault](MicroBatch& micro_batch) {
    return eager_value_clip(micro_batch, fault);
  };
  return eager_implementation(
      {.loss = "value_clip", .source = {"impl/faulty/value_clip_eager.cpp", 1}}, std::move(name),
      step, trainer);
}

Implementation faulty(std::string name, ValueClipFault fault, Fault why,
                      const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// The same where f16 is computed in f16.
Implementation in_f16(Implementation i, ValueClipFault fault) {
  return in_the_fields_format(std::move(i), [fault](MicroBatch& micro_batch) {
    return eager_value_clip_in_f16(micro_batch, fault);
  });
}

/// Faults in squares, clip and mask.
void add_value_faults(std::vector<Implementation>& all) {
  Implementation square =
      faulty("square_then_half", ValueClipFault::square_then_half,
             {.twin = "eager",
              .thread = "https://github.com/volcengine/verl/blob/main/verl/trainer/ppo/"
                        "core_algos.py",
              .cause = "overflow of a square or sum",
              .trigger = "|value - return| between 1.84e19 and 2.61e19 (f32), 256 and 361 (f16)",
              .killers = {"finite_forward"}});
  // In f32 16-bit squares do not overflow.
  all.push_back(in_f16(std::move(square), ValueClipFault::square_then_half));
  all.push_back(faulty("minimum_of_squares", ValueClipFault::minimum_of_squares,
                       {.twin = "eager",
                        .thread = kFormula,
                        .cause = "option misread",
                        .trigger = "a prediction outside the clip range",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("clip_gradient_leaks", ValueClipFault::clip_gradient_leaks,
                       {.twin = "eager",
                        .thread = kFormula,
                        .cause = "gradient through a clamp",
                        .trigger = "a prediction outside the clip range, the clipped one farther",
                        .killers = {"reference_agreement"}}));
  all.push_back(
      faulty("masked_multiply", ValueClipFault::masked_multiply,
             {.twin = "eager",
              .thread = "https://github.com/huggingface/trl/pull/6693",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a masked position",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
}

/// Faults that a length shows: a launch of more blocks than there may be fails, and nobody asks
/// whether it did; integers beyond 256 are even in bf16, beyond 512 multiples of 4; a sum in two
/// launches has no place for what groups leave over, while each gradient is right.
void add_length_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("beyond_grid", ValueClipFault::beyond_grid,
                       fault_of_length("https://github.com/linkedin/Liger-Kernel/pull/1294",
                                       "more than 65535 tokens")));
  all.push_back(faulty("row_count_in_bf16", ValueClipFault::row_count_in_bf16,
                       fault_of_length("https://github.com/chaidiscovery/chai-lab/pull/425",
                                       "a mean over each sequence, of more than 256 tokens")));
  all.push_back(
      faulty("loss_of_full_groups", ValueClipFault::loss_of_full_groups,
             fault_of_length("https://github.com/IST-DASLab/llmq/pull/63",
                             "more than 65536 tokens, and some that groups of 96 leave over")));
}

/// Faults in what a token counts.
void add_reduction_faults(std::vector<Implementation>& all) {
  const Trainer mean_of_means = {.all_reduce = Trainer::AllReduce::mean,
                                 .mean_over_micro_batches = true};
  all.push_back(faulty("mean_of_micro_batch_means", ValueClipFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/pull/6957",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       mean_of_means));
  all.push_back(faulty("empty_divisor", ValueClipFault::empty_divisor,
                       {.twin = "eager",
                        .thread = kCritic,
                        .cause = "empty divisor",
                        .trigger = "a fully masked mini-batch",
                        .killers = {"empty_is_zero"}}));
  all.push_back(faulty("mask_one_token_on", ValueClipFault::mask_one_token_on,
                       {.twin = "eager",
                        .thread = "https://github.com/chengchingwen/Transformers.jl/issues/4",
                        .cause = "off by one position",
                        .trigger = "padding: the token after a sequence's end counts",
                        .killers = {"masked_positions_inert", "reference_agreement"}}));
  all.push_back(faulty("rank_average_not_undone", ValueClipFault::none,
                       {.twin = "eager",
                        .thread = "https://github.com/meta-pytorch/torchtune/pull/2172",
                        .cause = "rank average",
                        .trigger = "two ranks or more",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean}));
}

}  // namespace

std::vector<Implementation> value_clip_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(in_f16(implementation("eager_native"), ValueClipFault::none));
  add_value_faults(all);
  add_reduction_faults(all);
  add_length_faults(all);
  return all;
}

}  // namespace lossgate::impl
