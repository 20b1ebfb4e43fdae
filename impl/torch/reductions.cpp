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

/// Whether the caller is told what it divides by.
bool can_be_had(Reduction reduction, const StepCounts& counts) {
  switch (reduction) {
    case Reduction::none:
      return false;
    case Reduction::sum:
      return true;
    case Reduction::token_mean:
      return counts.total_tokens.has_value();
    case Reduction::sequence_mean:
      return counts.total_sequences.has_value();
    case Reduction::seq_mean_token_sum_norm:
      return counts.total_sequences && counts.max_length;
    case Reduction::sum_over_items:
      return counts.num_items.has_value();
  }
  return false;
}

}  // namespace

ReductionPlan reduction_plan(std::string_view reduction, const StepCounts& counts,
                             const char* argument) {
  const std::optional<Reduction> parsed = parse_reduction(reduction);
  TORCH_CHECK(parsed && can_be_had(*parsed, counts), argument, " cannot be '",
              std::string(reduction), "'");
  const auto at_least = [](std::int64_t least, const std::optional<std::int64_t>& count,
                           const char* name) {
    TORCH_CHECK(!count || *count >= least, name, " must be at least ", least, ", got ", *count);
    return count.value_or(least);
  };
  return {.reduction = *parsed,
          .total_tokens = at_least(0, counts.total_tokens, "total_tokens"),
          .total_sequences = at_least(0, counts.total_sequences, "total_sequences"),
          .max_length = at_least(1, counts.max_length, "max_length"),
          .num_items = at_least(1, counts.num_items, "num_items")};
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
