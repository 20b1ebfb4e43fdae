// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <vector>

#include "properties/transforms.h"
#include "reference/spec/masked.h"
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
/// What callers never leave behind the mask of this field they do not leave there now (rule C9).
bool take_over(const Field& field, Tensor& tensor, const Tensor& other,
               const std::vector<bool>& valid) {
  const Tensor own = tensor;
  take_numbers(tensor, other);
  const std::int64_t each = valid.empty() ? 1 : tensor.size() / std::ssize(valid);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const bool counts = valid[static_cast<std::size_t>(i / each)];
    if (!counts && !keeps_to(field.masked, field.quantity, tensor.at(i))) {
      std::memcpy(tensor.element(i), own.element(i), size_of(tensor.dtype));
    } else if (tensor.at(i) != other.at(i) && !std::isnan(other.at(i))) {
      return false;
    }
  }
  return true;
}

std::optional<Transformed> on_policy(const LossSignature& signature, const Case& whole,
                                     const Case&) {
  if (signature.on_policy.empty()) return std::nullopt;
  Transformed result{.c = whole};
  const std::vector<bool> valid = valid_positions(signature, whole);
  for (const auto& [name, twin] : signature.on_policy) {
    const Field& field = *signature.find_field(name);
    if (field.absent) continue;  // the twin stands for it
    if (!take_over(field, result.c.batch.at(name), whole.batch.at(twin), valid)) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace

const Transform kZeroAdvantage{"zero_advantage", zero_advantage};
const Transform kOnPolicy{"on_policy", on_policy};

}  // namespace lossgate::properties
