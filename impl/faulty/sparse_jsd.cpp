// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/sparse_jsd.h"

#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/sparse_jsd_eager.h"
#include "impl/forms.h"
#include "impl/validate_teacher.h"

namespace lossgate::impl {
namespace {

Implementation implementation(std::string name, SparseJsdFault fault,
                              std::string_view form = kDivergenceForm) {
  const Step step = [fault](MicroBatch& micro_batch) {
    return eager_sparse_jsd(micro_batch, fault);
  };
  return eager_implementation(
      {.loss = "sparse_jsd", .source = {"impl/faulty/sparse_jsd_eager.cpp", 1}, .form = form},
      std::move(name), step, {.check = &require_valid_sparse_jsd});
}

Implementation faulty(std::string name, SparseJsdFault fault, Fault why) {
  return with_fault(implementation(std::move(name), fault), std::move(why));
}

}  // namespace

std::vector<Implementation> sparse_jsd_implementations() {
  constexpr const char* kServerTeacher = "https://github.com/huggingface/trl/pull/5594";
  std::vector<Implementation> all;
  all.push_back(implementation("eager", SparseJsdFault::none));
  all.push_back(implementation("eager_unlisted", SparseJsdFault::unlisted, ""));
  all.push_back(faulty("sparse_reverse_kl_sentinel_unmasked", SparseJsdFault::sentinel_unmasked,
                       {.twin = "eager",
                        .thread = kServerTeacher,
                        .cause = "value repaired, gradient not",
                        .trigger = "beta = 1, or no tail, and -infinity for the teacher at padding",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("mask_multiplied_after_divergence",
                       SparseJsdFault::mask_multiplied_after_divergence,
                       {.twin = "eager",
                        .thread = kServerTeacher,
                        .cause = "non-finite value behind a mask",
                        .trigger = "an infinity or NaN at a masked position",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("padding_replaced_by_zero_and_counted",
                       SparseJsdFault::padding_replaced_by_zero_and_counted,
                       {.twin = "eager",
                        .thread = kServerTeacher,
                        .cause = "masked data leaks",
                        .trigger = "a masked position",
                        .killers = {"reference_agreement", "padding_invariance"}}));
  all.push_back(faulty("nan_to_num_at_valid", SparseJsdFault::nan_to_num_at_valid,
                       {.twin = "eager",
                        .thread = kServerTeacher,
                        .cause = "value repaired, gradient not",
                        .trigger = "NaN at a valid position",
                        .killers = {"no_laundering"}}));
  all.push_back(faulty("sentinel_compared_in_bf16", SparseJsdFault::sentinel_compared_in_bf16,
                       {.twin = "eager",
                        .thread = kServerTeacher,
                        .cause = "sentinel compared",
                        .trigger = "padding that is not -infinity",
                        .killers = {"reference_agreement", "masked_positions_inert"}}));
  all.push_back(
      faulty("teacher_tail_floored_after_logarithm", SparseJsdFault::tail_floored_after_logarithm,
             {.twin = "eager",
              .thread = "https://github.com/verl-project/verl/pull/7855",
              .cause = "clamp after exp",
              .trigger = "listed teacher log-probs that are rounded to more than 1 together",
              .killers = {"finite_forward", "finite_backward"}}));
  return all;
}

}  // namespace lossgate::impl
