// SPDX-License-Identifier: Apache-2.0
#include "properties/nudged.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace lossgate::properties {
namespace {

double size_of(double value) { return std::isfinite(value) ? std::fabs(value) : 0.0; }

double largest(const Tensor& tensor) {
  double most = 0.0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) most = std::max(most, size_of(tensor.at(i)));
  return most;
}

bool is_log(const Field& field) {
  return field.quantity == Quantity::log_prob || field.quantity == Quantity::logit;
}

}  // namespace

Case nudged(const LossSignature& signature, Case c, double relative, Scale scale) {
  std::mt19937_64 bits;
  std::uniform_real_distribution<double> part(-1.0, 1.0);
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype) || !field.dtypes.empty()) continue;
    const double least = is_log(field) ? 1.0 : 0.0, most = largest(tensor);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.at(i);
      const double size = scale == Scale::of_field ? most : size_of(value);
      tensor.set(i, value + relative * std::max(size, least) * part(bits));
    }
  }
  return c;
}

}  // namespace lossgate::properties
