// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/implementation.h"
#include "impl/torch/policy_terms.h"
#include "impl/torch/reductions.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// One micro-batch as tensors. Differentiable fields are leaves that require a gradient, where the
/// caller asks for it. Those that
/// all micro-batches share (weights) are handed over in the compute format, as the master copies of
/// a mixed-precision trainer are, so that 16-bit gradients are not rounded before they add up.
class StepInputs {
 public:
  explicit StepInputs(MicroBatch& micro_batch);

  const at::Tensor& operator[](std::string_view field) const;  ///< throws std::out_of_range
  const LossSpec& spec() const { return micro_batch_.part.spec; }
  std::int64_t valid_tokens() const { return micro_batch_.positions.tokens; }
  ReductionPlan reduction_plan() const;  ///< of the spec, with the counts of the whole step

 private:
  MicroBatch& micro_batch_;
  std::vector<std::pair<std::string, at::Tensor>> fields_;
};

/// What a loss function returns before its backward.
struct StepOutputs {
  at::Tensor loss;                                                ///< undefined where there is none
  std::vector<std::pair<std::string, at::Tensor>> values;         ///< the signature's own outputs
  std::vector<std::pair<std::string, std::int64_t>> counts = {};  ///< of work done
};

using Forward = StepOutputs (*)(const StepInputs&);

/// The row of the catalog for a loss in LibTorch operations: its forward is run under autograd on
/// each micro-batch, its backward with the upstream gradient of the case.
Implementation torch_implementation(std::string loss, Source source, Forward forward,
                                    std::string form, const Trainer& trainer = {});

/// Elementwise operations in f32 (f64 for f64), whatever the storage.
Arithmetic torch_arithmetic(Dtype stored, std::string_view form);

std::optional<double> limit_option(const LossSpec& spec, std::string_view option);
KlOptions kl_options(const LossSpec& spec);
PolicyOptions policy_options(const LossSpec& spec);

/// Refuses a tensor that is not [sequences, tokens].
void expect_positions(const at::Tensor& tensor, const char* argument);

/// Refuses a tensor whose shape is not that of `model`, naming the argument: nothing broadcasts.
void expect_like(const at::Tensor& model, const at::Tensor& tensor, const char* argument);

}  // namespace lossgate::impl
