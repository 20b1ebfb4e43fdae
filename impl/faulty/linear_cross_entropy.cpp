// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/linear_cross_entropy.h"

#include <string>
#include <string_view>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/grad_mode.h"
#include "impl/faulty/linear_cross_entropy_eager.h"
#include "impl/forms.h"

namespace lossgate::impl {
namespace {

Implementation implementation(std::string name, const EagerLinearCrossEntropyOptions& options,
                              std::string_view form = kSoftmaxForm) {
  return eager_implementation({.loss = "linear_cross_entropy",
                               .source = {"impl/faulty/linear_cross_entropy_eager.cpp", 1},
                               .form = form},
                              std::move(name), [options](MicroBatch& batch) {
                                return eager_linear_cross_entropy(batch, options);
                              });
}

Implementation faulty(std::string name, const EagerLinearCrossEntropyOptions& options, Fault why) {
  return with_fault(implementation(std::move(name), options), std::move(why));
}

Implementation weight_gradient_in_bf16() {
  Implementation narrow = faulty("weight_gradient_in_bf16",
                                 {.fault = LinearCrossEntropyFault::weight_gradient_in_16_bits},
                                 {.twin = "eager",
                                  .thread = "https://github.com/allenai/OLMo-core/pull/370",
                                  .cause = "narrow arithmetic",
                                  .trigger = "16-bit fields and sequences whose gradients differ",
                                  .killers = {"reference_agreement"}});
  narrow.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (size_of(c.batch.at("weight").dtype) != 2) return "the fault is in 16 bits alone";
    return std::nullopt;
  };
  return narrow;
}

/// A kernel that makes gradients in its forward, and that of `input` where it makes another one.
Implementation without_gradient_in(GradMode mode, std::string_view input, std::string name,
                                   std::string thread, std::string trigger) {
  const Step step = [](MicroBatch& batch) { return eager_linear_cross_entropy(batch, {}); };
  return with_fault(eager_implementation({.loss = "linear_cross_entropy",
                                          .source = {"impl/faulty/grad_mode.h", 1},
                                          .form = kSoftmaxForm},
                                         std::move(name), without_gradient(step, input, mode)),
                    {.twin = "eager",
                     .thread = std::move(thread),
                     .cause = "depends on requires_grad",
                     .trigger = std::move(trigger),
                     .killers = {"grad_mode_invariance"}});
}

}  // namespace

std::vector<Implementation> linear_cross_entropy_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", {}));
  all.push_back(implementation("eager_difference", {.cost = CrossEntropyFault::difference},
                               kTargetDifferenceForm));
  all.push_back(faulty("bias_of_taken_alone",
                       {.fault = LinearCrossEntropyFault::bias_of_taken_alone},
                       {.twin = "eager",
                        .thread = "https://github.com/apple/ml-cross-entropy/issues/52",
                        .cause = "disagrees with the formula",
                        .trigger = "a bias other than 0: only the taken token's logit has it",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("chunk_means_added", {.fault = LinearCrossEntropyFault::chunk_means_added},
                       {.twin = "eager",
                        .thread = "https://github.com/NVIDIA-NeMo/Automodel/issues/3803",
                        .cause = "wrong divisor",
                        .trigger = "a token mean over more than one chunk, here a sequence each",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("gradient_filtered", {.fault = LinearCrossEntropyFault::gradient_filtered},
                       {.twin = "eager",
                        .thread = "https://github.com/apple/ml-cross-entropy/issues/14",
                        .cause = "gradient filtered",
                        .trigger = "a token of probability below 2^-12",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_over_no_token", {.cost = CrossEntropyFault::mean_over_no_token},
                       {.twin = "eager",
                        .thread = "https://github.com/unslothai/unsloth/pull/10892",
                        .cause = "empty divisor",
                        .trigger = "a step whose labels are all -100",
                        .killers = {"empty_is_zero", "finite_forward"}}));
  all.push_back(weight_gradient_in_bf16());
  all.push_back(without_gradient_in(GradMode::all_but_second, "bias",
                                    "bias_gradient_with_weight_only",
                                    "https://github.com/fla-org/flash-linear-attention/pull/1253",
                                    "a frozen weight beside a bias that is trained"));
  all.push_back(without_gradient_in(GradMode::second, "weight", "weight_gradient_never_alone",
                                    "https://github.com/fla-org/flash-linear-attention/pull/1253",
                                    "a weight that is trained beside frozen inputs and a bias"));
  return all;
}

}  // namespace lossgate::impl
