// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/kl_penalty.h"

#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/kl_penalty_eager.h"

namespace lossgate::impl {
namespace {

constexpr const char* form_name(K3Form form) {
  switch (form) {
    case K3Form::exp_minus_x_minus_1:
      return "exp(x) - x - 1";
    case K3Form::exp_minus_1_minus_x:
      return "exp(x) - 1 - x";
    default:
      return "expm1(x) - x";
  }
}

Implementation implementation(std::string name, const EagerKlOptions& options, K3Form declared) {
  const Step step = [options](MicroBatch& micro_batch) {
    return eager_kl_penalty(micro_batch, options);
  };
  return eager_implementation({.loss = "kl_penalty",
                               .source = {"impl/faulty/kl_penalty_eager.cpp", 1},
                               .form = form_name(declared)},
                              std::move(name), step);
}

Implementation implementation(std::string name, const EagerKlOptions& options) {
  return implementation(std::move(name), options, options.form);
}

Implementation faulty(std::string name, const EagerKlOptions& options, Fault fault) {
  return with_fault(implementation(std::move(name), options), std::move(fault));
}

/// Faults in exp, clamp and mask.
void add_overflow_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("k3_output_clamp_only", {.fault = KlFault::k3_output_clamp_only},
                       {.twin = "eager",
                        .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1335",
                        .cause = "dead clamp",
                        .trigger = "k3 with ref_log_prob - log_prob above 88.7 (f32)",
                        .killers = {"finite_backward"}}));
  all.push_back(
      faulty("k3_unclamped_mask_multiply", {.fault = KlFault::k3_unclamped_mask_multiply},
             {.twin = "eager",
              .thread = "https://github.com/NVIDIA-NeMo/RL/pull/4120",
              .cause = "non-finite value behind a mask",
              .trigger = "an infinity or NaN at a masked position",
              .killers = {"finite_forward", "finite_backward", "masked_positions_inert"}}));
  all.push_back(
      faulty("straight_through_inf_minus_inf", {.fault = KlFault::straight_through_inf_minus_inf},
             {.twin = "eager",
              .thread = "https://github.com/volcengine/verl/blob/main/verl/trainer/ppo/"
                        "core_algos.py",
              .cause = "overflow of a square or sum",
              .trigger = "kl_straight_through with |log_prob - ref_log_prob| above 2.6e19 (f32)",
              .killers = {"finite_forward"}}));
}

/// Faults in value and slope.
void add_signal_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("k3_gradient_detached", {.fault = KlFault::k3_gradient_detached},
                       {.twin = "eager",
                        .thread = "https://github.com/NovaSky-AI/SkyRL/commit/9d7bca91a",
                        .cause = "dead signal",
                        .trigger = "k3 with log_prob unlike ref_log_prob inside the clamps",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("k1_sign_flipped", {.fault = KlFault::k1_sign_flipped},
                       {.twin = "eager",
                        .thread = "https://joschu.net/blog/kl-approx.html",
                        .cause = "wrong sign",
                        .trigger = "k1 with log_prob unlike ref_log_prob",
                        .killers = {"reference_agreement"}}));
  all.push_back(with_fault(
      implementation("k3_cancels", {.form = K3Form::exp_minus_x_minus_1}, K3Form::expm1_minus_x),
      {.twin = "eager",
       .thread = "https://github.com/unslothai/unsloth-zoo/pull/1240",
       .cause = "cancellation",
       .trigger = "k3 with log_prob near ref_log_prob",
       .killers = {"reference_agreement"}}));
  Implementation narrow =
      faulty("k3_in_storage_format",
             {.fault = KlFault::k3_in_storage_format, .form = K3Form::exp_minus_1_minus_x},
             {.twin = "exp_1_x",
              .thread = "https://github.com/OpenRLHF/OpenRLHF/pull/1335",
              .cause = "narrow arithmetic",
              .trigger = "k3 of 16-bit fields with log_prob unlike ref_log_prob",
              .killers = {"reference_agreement"}});
  narrow.unsupported = [](const Case& c) -> std::optional<std::string> {
    if (size_of(c.batch.at("log_prob").dtype) == 2) return std::nullopt;
    return "the fault is in 16 bits alone";
  };
  all.push_back(std::move(narrow));
}

}  // namespace

std::vector<Implementation> kl_penalty_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager", {}));
  all.push_back(implementation("exp_x_1", {.form = K3Form::exp_minus_x_minus_1}));
  all.push_back(implementation("exp_1_x", {.form = K3Form::exp_minus_1_minus_x}));
  add_overflow_faults(all);
  add_signal_faults(all);
  return all;
}

}  // namespace lossgate::impl
