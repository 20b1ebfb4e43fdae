// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "properties/transforms.h"
#include "reference/spec/numbers.h"

namespace lossgate::properties {
namespace {

std::optional<Transformed> zero_advantage(const LossSignature& signature, const Case& whole,
                                          const Case&) {
  if (signature.advantage.empty()) return std::nullopt;
  Transformed result{.c = whole};
  Tensor& advantage = result.c.batch.at(signature.advantage);
  for (std::int64_t i = 0; i < advantage.size(); ++i) advantage.set(i, i % 2 == 0 ? 0.0 : -0.0);
  if (!signature.coefficient.empty()) result.c.spec.set(signature.coefficient, 0.0);
  return result;
}

/// The other's numbers, in the tensor's own format; false where that has not all of their digits.
bool take_over(Tensor& tensor, const Tensor& other) {
  take_numbers(tensor, other);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.at(i) != other.at(i) && !std::isnan(other.at(i))) return false;
  }
  return true;
}

std::optional<Transformed> on_policy(const LossSignature& signature, const Case& whole,
                                     const Case&) {
  if (signature.on_policy.empty()) return std::nullopt;
  Transformed result{.c = whole};
  for (const auto& [field, twin] : signature.on_policy) {
    if (!take_over(result.c.batch.at(field), whole.batch.at(twin))) return std::nullopt;
  }
  return result;
}

}  // namespace

const Transform kZeroAdvantage{"zero_advantage", zero_advantage};
const Transform kOnPolicy{"on_policy", on_policy};

}  // namespace lossgate::properties
