// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/reductions.h"

#include <string>

#include "reference/spec/case.h"

namespace lossgate::impl {
namespace {

/// A zero total is right only where nothing counts: then any finite factor will do.
double one_over(std::int64_t total, const char* argument, const at::Tensor& valid) {
  if (total > 0) return 1.0 / static_cast<double>(total);
  TORCH_CHECK(valid.is_meta() || !valid.any().item<bool>(), argument,
              " is 0 although the mask has valid positions");
  return 1.0;
}

}  // namespace

ReductionPlan reduction_plan(std::string_view reduction, std::int64_t total_tokens,
                             std::int64_t total_sequences, std::int64_t max_length,
                             std::int64_t num_items) {
  const std::optional<Reduction> parsed = parse_reduction(reduction);
  TORCH_CHECK(parsed && *parsed != Reduction::none, "reduction '", std::string(reduction),
              "' is unknown");
  TORCH_CHECK(total_tokens >= 0, "total_tokens must not be negative, got ", total_tokens);
  TORCH_CHECK(total_sequences >= 0, "total_sequences must not be negative, got ", total_sequences);
  TORCH_CHECK(max_length > 0, "max_length must be positive, got ", max_length);
  TORCH_CHECK(num_items > 0, "num_items must be positive, got ", num_items);
  return {*parsed, total_tokens, total_sequences, max_length, num_items};
}

at::Tensor scaled(const at::Tensor& terms, const at::Tensor& valid, const ReductionPlan& plan) {
  switch (plan.reduction) {
    case Reduction::token_mean:
      return terms * one_over(plan.total_tokens, "total_tokens", valid);
    case Reduction::sequence_mean: {
      const double per_sequence = one_over(plan.total_sequences, "total_sequences", valid);
      const at::Tensor counts = row_counts(valid).clamp_min(1).to(at::kDouble);
      return terms * counts.reciprocal_().mul_(per_sequence).to(terms.scalar_type());
    }
    case Reduction::seq_mean_token_sum_norm: {
      const double per_sequence = one_over(plan.total_sequences, "total_sequences", valid);
      return terms * (per_sequence / static_cast<double>(plan.max_length));
    }
    case Reduction::sum_over_items:
      return terms * (1.0 / static_cast<double>(plan.num_items));
    default:
      return terms;
  }
}

at::Tensor reduce(const at::Tensor& terms, const at::Tensor& valid, const ReductionPlan& plan) {
  return scaled(terms, valid, plan).sum();
}

at::Tensor valid_from_labels(const at::Tensor& label, at::IntArrayRef extents, std::int64_t vocab) {
  TORCH_CHECK(label.sizes() == extents, "label has shape ", label.sizes(), ", expected ", extents);
  TORCH_CHECK(label.scalar_type() == at::kLong || label.scalar_type() == at::kInt,
              "label must be of int64 or int32, got ", label.scalar_type());
  const at::Tensor valid = label != kIgnoreLabel;
  TORCH_CHECK(!label.is_cpu() ||
                  !(label < 0).logical_or_(label >= vocab).logical_and_(valid).any().item<bool>(),
              "label must be ", kIgnoreLabel, " or lie in [0, ", vocab, ")");
  return valid;
}

at::Tensor valid_from(const at::Tensor& mask, at::IntArrayRef extents) {
  TORCH_CHECK(mask.sizes() == extents, "mask has shape ", mask.sizes(), ", expected ", extents);
  if (mask.scalar_type() == at::kBool) return mask;
  TORCH_CHECK(at::isIntegralType(mask.scalar_type(), false),
              "mask must be of booleans or integers, got ", mask.scalar_type());
  const at::Tensor valid = mask != 0;
  TORCH_CHECK(!mask.is_cpu() || at::equal(valid.to(mask.scalar_type()), mask),
              "mask must hold nothing but 0 and 1");
  return valid;
}

at::Tensor row_counts(const at::Tensor& valid) { return valid.sum(1, /*keepdim=*/true); }

}  // namespace lossgate::impl
