// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/grpo.h"

#include <utility>

#include "impl/faulty/advantage_scaling.h"
#include "impl/faulty/eager.h"
#include "impl/faulty/grad_mode.h"
#include "impl/faulty/grpo_eager.h"
#include "impl/faulty/strided.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

constexpr const char* kFile = "impl/faulty/grpo_eager.cpp";

Trainer mean_over_ranks(int world_power) {
  return {.all_reduce = Trainer::AllReduce::mean, .world_power = world_power};
}

Implementation implementation(std::string name, const Step& step, const Trainer& trainer = {}) {
  return eager_implementation({.loss = "grpo", .source = {kFile, 1}, .form = kClosedK3Form},
                              std::move(name), step, trainer);
}

Step eager(GrpoFault fault = GrpoFault::none) {
  return [fault](MicroBatch& micro_batch) { return eager_grpo(micro_batch, {.fault = fault}); };
}

Implementation scaled_implementation(std::string name,
                                     void (*prepare)(const LossSignature&, Case&)) {
  const Step step = [](MicroBatch& micro_batch) {
    return eager_grpo_in_f64(micro_batch, {.advantages_scaled = true});
  };
  Implementation i = implementation(std::move(name), step, {.prepare = prepare});
  i.source = {"impl/faulty/advantage_scaling.cpp", 1};
  i.arithmetic = [own = i.arithmetic](Dtype dtype) {
    Arithmetic arithmetic = own(dtype);
    arithmetic.compute = Dtype::f64;  // in range alone: each part leaves its results in f32
    return arithmetic;
  };
  i.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.batch.at("log_prob").dtype != Dtype::f64) return std::nullopt;
    return "scaled advantages need a wider format than the fields";
  };
  return i;
}

/// Silently takes a reduction that it does not know for a sum.
void check_all_but_reduction(const LossSignature& signature, const Case& c) {
  check_options(signature, c);
  check_fields(signature, c);
  check_values(signature, c);
  check_split(signature, c);
}

Implementation faulty(std::string name, GrpoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), eager(fault), trainer), std::move(why));
}

/// Faults in exp, clamp and mask.
void add_overflow_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("unclamped_exp_mask_multiply", GrpoFault::unclamped_exp_mask_multiply,
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/RL/pull/4120",
                        .cause = "non-finite value behind a mask",
                        .trigger = "a log-ratio above 88.7 (f32), masked or clipped",
                        .killers = {"finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("nan_to_num_gradient", GrpoFault::nan_to_num_gradient,
                       {.twin = "eager",
                        .thread = "https://github.com/pytorch/pytorch/issues/94700",
                        .cause = "value repaired, gradient not",
                        .trigger = "a log-ratio above 88.7 (f32), masked or clipped",
                        .killers = {"finite_backward", "masked_positions_inert"}}));
  all.push_back(faulty("mask_multiply_after_nan_to_num", GrpoFault::mask_multiply_after_nan_to_num,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6693",
                        .cause = "value repaired, gradient not",
                        .trigger = "an infinity or NaN, masked or valid",
                        .killers = {"finite_backward", "no_laundering"}}));
  all.push_back(faulty("clamp_ratio_after_exp", GrpoFault::clamp_ratio_after_exp,
                       {.twin = "eager",
                        .thread = "https://github.com/google/tunix/pull/1560",
                        .cause = "clamp after exp",
                        .trigger = "a valid log-ratio above 88.7 (f32)",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("output_clamp_only", GrpoFault::output_clamp_only,
                       {.twin = "eager",
                        .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1335",
                        .cause = "dead clamp",
                        .trigger = "k3 with ref_log_prob - log_prob above 88.7 (f32)",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("clamp_in_caller_only", GrpoFault::clamp_in_caller_only,
                       {.twin = "eager",
                        .thread = "https://github.com/linkedin/Liger-Kernel/blob/main/src/"
                                  "liger_kernel/chunked_loss/grpo_loss.py",
                        .cause = "dead clamp",
                        .trigger = "a valid log-ratio above the clamp",
                        .killers = {"finite_backward", "reference_agreement"}}));
  all.push_back(faulty("token_clamp_not_sequence", GrpoFault::token_clamp_not_sequence,
                       {.twin = "eager",
                        .thread = "https://github.com/OpenRLHF/OpenRLHF/blob/main/openrlhf/models/"
                                  "loss.py",
                        .cause = "dead clamp",
                        .trigger = "sequence level with a mean log-ratio above the clamp",
                        .killers = {"finite_backward", "reference_agreement"}}));
  const Step in_f16 = [](MicroBatch& micro_batch) { return eager_grpo_in_f16(micro_batch, {}); };
  Implementation f16 = implementation("f16_exp_under_clamp_20", in_f16);
  f16.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (c.batch.at("log_prob").dtype != Dtype::f16) return "the fault is in f16 alone";
    return std::nullopt;
  };
  all.push_back(
      with_fault(std::move(f16), {.twin = "eager",
                                  .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1335",
                                  .cause = "narrow arithmetic",
                                  .trigger = "f16 with a log-ratio above 11.09",
                                  .killers = {"finite_backward", "reference_agreement"}}));
}

/// Faults in what the gradient flows through.
void add_signal_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("kl_gradient_dropped", GrpoFault::kl_gradient_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/commit/9d7bca91a",
                        .cause = "dead signal",
                        .trigger = "a KL term with coefficient and slope",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("dead_clamp", GrpoFault::dead_clamp,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/commit/9d7bca91a",
                        .cause = "dead signal",
                        .trigger = "an advantage that is not 0 inside the clip range",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("dual_clip_of_positive", GrpoFault::dual_clip_of_positive,
                       {.twin = "eager",
                        .thread = "https://github.com/thu-ml/tianshou/issues/433",
                        .cause = "option misread",
                        .trigger = "dual_clip and a positive advantage",
                        .killers = {"reference_agreement"}}));
  all.push_back(with_fault(grpo_with_gradient_error(1e-6),
                           {.twin = "eager",
                            .thread = "https://github.com/NovaSky-AI/SkyRL/pull/925",
                            .cause = "backward is not the derivative",
                            .trigger = "f32, |log-ratio| <= 1: the smallest bias that must show",
                            .killers = {"reference_agreement"}}));
}

/// Faults in where what is needed is looked for.
void add_place_faults(std::vector<Implementation>& all) {
  all.push_back(with_fault(implementation("mask_by_other_strides",
                                          with_field_by_strides_of(eager(), "mask", "log_prob")),
                           {.twin = "eager",
                            .thread = "https://github.com/linkedin/Liger-Kernel/pull/1461",
                            .cause = "strides ignored",
                            .trigger = "a mask that lies otherwise than the log-probs",
                            .killers = {"reference_agreement"}}));
  Implementation saves = implementation(
      "saved_on_its_class",
      with_one_place_for_all(eager(), "log_prob", {History::evaluation, History::two_forwards}));
  all.push_back(with_fault(std::move(saves),
                           {.twin = "eager",
                            .thread = "https://docs.pytorch.org/docs/stable/notes/extending.html",
                            .cause = "state between calls",
                            .trigger = "two forwards before the first one's backward",
                            .killers = {"grad_mode_invariance"}}));
}

/// Faults in what a token counts.
void add_reduction_faults(std::vector<Implementation>& all) {
  constexpr const char* kScaling = "https://github.com/NovaSky-AI/SkyRL/pull/925";
  all.push_back(faulty("mean_of_micro_batch_means", GrpoFault::mean_of_micro_batch_means,
                       {.twin = "eager",
                        .thread = kScaling,
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal token counts",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  all.push_back(faulty("divisor_without_floor", GrpoFault::divisor_without_floor,
                       {.twin = "eager",
                        .thread = kScaling,
                        .cause = "empty divisor",
                        .trigger = "a fully masked mini-batch",
                        .killers = {"empty_is_zero"}}));
  Implementation ignores =
      implementation("unknown_reduction_ignored", eager(), {.check = &check_all_but_reduction});
  all.push_back(
      with_fault(std::move(ignores), {.twin = "eager",
                                      .thread = kScaling,
                                      .cause = "invalid input accepted",
                                      .trigger = "a reduction that the loss does not have",
                                      .killers = {"error_on_invalid"}}));
  all.push_back(with_fault(scaled_implementation("normalised_twice", &scale_advantages_twice),
                           {.twin = "prescaled",
                            .thread = kScaling,
                            .cause = "scaled twice",
                            .trigger = "two valid tokens and a mean",
                            .killers = {"reference_agreement"}}));
  all.push_back(
      with_fault(scaled_implementation("remainder_keeps_zero", &scale_advantages_without_remainder),
                 {.twin = "prescaled",
                  .thread = "https://github.com/NovaSky-AI/SkyRL/pull/1296",
                  .cause = "remainder dropped",
                  .trigger = "sequences that micro-batches of one size do not cover",
                  .killers = {"split_invariance"}}));
  all.push_back(faulty("masked_mean_counts_padding", GrpoFault::masked_mean_counts_padding,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/6439",
                        .cause = "padding counted",
                        .trigger = "a mean over a batch with a masked position",
                        .killers = {"reference_agreement", "padding_invariance"}}));
  all.push_back(faulty("advantage_bias_at_padding", GrpoFault::advantage_bias_at_padding,
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/blob/main/skyrl/backends/"
                                  "skyrl_train/utils/ppo_utils.py",
                        .cause = "masked data leaks",
                        .trigger = "a masked position whose advantage is not 0",
                        .killers = {"masked_positions_inert"}}));
  all.push_back(faulty("first_padding_trained", GrpoFault::first_padding_trained,
                       {.twin = "eager",
                        .thread = "https://github.com/CarperAI/trlx/pull/433",
                        .cause = "masked data leaks",
                        .trigger = "a masked position behind a valid one",
                        .killers = {"masked_positions_inert"}}));
}

/// Faults in the reduction over ranks.
void add_rank_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("rank_average_not_undone", GrpoFault::none,
                       {.twin = "data_parallel",
                        .thread = "https://github.com/meta-pytorch/torchtune/pull/2172",
                        .cause = "rank average",
                        .trigger = "two ranks or more",
                        .killers = {"split_invariance"}},
                       mean_over_ranks(0)));
  all.push_back(faulty("rank_average_undone_twice", GrpoFault::none,
                       {.twin = "data_parallel",
                        .thread = "https://github.com/huggingface/transformers/pull/34373",
                        .cause = "rank average",
                        .trigger = "two ranks or more",
                        .killers = {"split_invariance"}},
                       mean_over_ranks(2)));
  all.push_back(faulty("local_count_as_global", GrpoFault::local_count_as_global,
                       {.twin = "data_parallel",
                        .thread = "https://github.com/PrimeIntellect-ai/prime-rl/pull/2562",
                        .cause = "mean of means",
                        .trigger = "ranks of unequal token counts",
                        .killers = {"split_invariance"}},
                       mean_over_ranks(0)));
  all.push_back(faulty("policy_undone_but_not_kl", GrpoFault::policy_undone_but_not_kl,
                       {.twin = "data_parallel",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/pull/1296",
                        .cause = "rank average",
                        .trigger = "two ranks or more and a KL term",
                        .killers = {"split_invariance"}},
                       mean_over_ranks(0)));
}

}  // namespace

std::vector<Implementation> eager_grpo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", eager()));
  all.push_back(scaled_implementation("prescaled", &scale_advantages));
  all.push_back(implementation("data_parallel", eager(), mean_over_ranks(1)));
  return all;
}

std::vector<Implementation> faulty_grpo_implementations() {
  std::vector<Implementation> all;
  add_overflow_faults(all);
  add_signal_faults(all);
  add_place_faults(all);
  add_reduction_faults(all);
  add_rank_faults(all);
  return all;
}

Implementation grpo_with_gradient_error(double relative) {
  const Step step = [relative](MicroBatch& micro_batch) {
    LossResult result = eager_grpo(micro_batch, {});
    for (std::size_t i = 0; i < micro_batch.positions.valid.size(); ++i) {
      if (!micro_batch.positions.valid[i]) continue;
      Tensor& gradient = result.outputs.back().tensor;
      const auto at = static_cast<std::int64_t>(i);
      gradient.set(at, gradient.at(at) * (1.0 + relative));
      break;
    }
    return result;
  };
  Implementation i = implementation("gradient_weight_off_by_1e-6", step);
  i.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (size_of(c.batch.at("log_prob").dtype) == 2) return "a 16-bit gradient cannot show it";
    return std::nullopt;
  };
  return i;
}

}  // namespace lossgate::impl
