// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/spec/reduction.h"

namespace lossgate::impl {

/// Everything that turns per-token terms of one micro-batch into its share of the loss. The counts
/// are those of the whole optimizer step: with local ones, micro-batches would be averaged as if
/// they were equally long.
struct ReductionPlan {
  Reduction reduction = Reduction::sum;
  std::int64_t total_tokens = 0;     ///< valid positions
  std::int64_t total_sequences = 0;  ///< sequences with a valid position
  std::int64_t max_length = 1;       ///< divisor of seq_mean_token_sum_norm
  std::int64_t num_items = 1;        ///< divisor of sum_over_items
};

/// What a caller is told of the step. What it has no parameter for is none.
struct StepCounts {
  std::optional<std::int64_t> total_tokens = {}, total_sequences = {};
  std::optional<std::int64_t> max_length = {}, num_items = {};
};

/// Refuses a name that is unknown or needs what the caller is not told, negative counts and
/// divisors that are not positive. `argument` is what the caller has the name from.
ReductionPlan reduction_plan(std::string_view reduction, const StepCounts& counts,
                             const char* argument = "reduction");

/// Each term times the factor that the reduction gives to it. `terms` [sequences, tokens] is zero
/// where `valid` is false. Refuses a total of 0 where something is valid.
at::Tensor scaled(const at::Tensor& terms, const at::Tensor& valid, const ReductionPlan& plan);

/// The sum of the scaled terms.
at::Tensor reduce(const at::Tensor& terms, const at::Tensor& valid, const ReductionPlan& plan);

/// Where labels count, that is are not -100. Refuses those outside [0, vocab) there.
at::Tensor valid_from_labels(const at::Tensor& label, at::IntArrayRef extents, std::int64_t vocab);

/// `mask` as booleans; refuses anything but booleans or integers 0 and 1.
at::Tensor valid_from(const at::Tensor& mask, at::IntArrayRef extents);

/// Valid positions of each sequence, [sequences, 1], as integers.
at::Tensor row_counts(const at::Tensor& valid);

}  // namespace lossgate::impl
