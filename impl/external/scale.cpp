// SPDX-License-Identifier: Apache-2.0
#include "impl/external/scale.h"

#include <algorithm>
#include <cmath>

namespace lossgate::impl {
namespace {

/// What is added up on the way: a logit is a sum of products of what two fields hold, a divergence
/// a few times the largest of two rows' logits, and the loss a sum of these.
constexpr double kTerms = 0x1p32;
/// exp of the difference of two log-probs so large leaves room for the scale and the terms in f32.
constexpr double kLargestLogProb = 32.0;
/// By how much the upstream gradient is divided before it meets the scale again.
constexpr double kDivisors = 0x1p40;

/// Of the formats in which terms and loss are, the one that holds least.
Dtype narrowest(const Subject& subject, Dtype stored) {
  Dtype narrowest = subject.arithmetic.compute.value_or(stored);
  for (const Stage stage : {Stage::per_token, Stage::loss}) {
    const auto format = stage_format(subject.arithmetic, stage, stored);
    if (format && max_finite(*format) < max_finite(narrowest)) narrowest = *format;
  }
  return narrowest;
}

/// Of the finite numbers that count.
double largest_magnitude(const LossSignature& loss, const Case& c, const Field& field) {
  const Tensor& tensor = c.batch.at(field.name);
  const std::vector<bool> valid = valid_positions(loss, c);
  const std::int64_t each =
      has_positions(field.axes) && !valid.empty() ? tensor.size() / std::ssize(valid) : 0;
  double largest = 0.0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (each > 0 && !valid[static_cast<std::size_t>(i / each)]) continue;
    const double size = std::fabs(tensor.at(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

}  // namespace

double scale_of(const Subject& subject, const LossSpec& spec) {
  if (subject.scaled_by.empty()) return 1.0;
  const double* number = std::get_if<double>(spec.find(subject.scaled_by));
  // What is no such number is there to be refused.
  return number && *number > 0.0 && std::isfinite(*number) ? *number * *number : 1.0;
}

std::optional<std::string> beyond_scale(const Subject& subject, const LossSignature& narrowed,
                                        const Case& c) {
  const double scale = scale_of(subject, c.spec);
  if (scale == 1.0) return std::nullopt;
  const Option* option = narrowed.find_option(subject.scaled_by);
  const double number = std::sqrt(scale);
  int exponent = 0;
  if (!option || number < option->low || number > option->high ||
      std::frexp(number, &exponent) != 0.5) {
    return subject.scaled_by + " is neither 1 nor 2, by whose square it is divided";
  }
  const Dtype format = narrowest(subject, float_dtype(narrowed, c));
  const double room = max_finite(format) / (scale * kTerms);
  for (const Field& field : narrowed.fields) {
    if (!field.dtypes.empty()) continue;
    const double size = largest_magnitude(narrowed, c, field);
    const bool exponent_of_e = field.quantity == Quantity::log_prob;
    if (std::max(size, 1.0) * size > room || (exponent_of_e && size > kLargestLogProb)) {
      return subject.scaled_by + " squared times numbers as large as those of " + field.name +
             " may not fit";
    }
  }
  const double upstream = std::fabs(c.upstream);
  if (upstream > 0.0 && upstream / scale < min_normal(format) * kDivisors) {
    return "the upstream gradient over " + subject.scaled_by + " squared may not fit";
  }
  return std::nullopt;
}

}  // namespace lossgate::impl
