// SPDX-License-Identifier: Apache-2.0
#include "properties/far_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "properties/transforms.h"
#include "reference/spec/padding.h"

namespace lossgate::properties {
namespace {

/// Log-probs that are held against each other, one of each at a place.
std::set<std::string> log_ratio_fields(const LossSignature& signature) {
  std::set<std::string> names;
  for (const ReachAxis& axis : signature.reach) {
    const bool log_prob = signature.find_field(axis.field)->quantity == Quantity::log_prob;
    if (log_prob && !axis.towards.empty()) names.insert({axis.field, axis.towards});
  }
  return names;
}

}  // namespace

Case with_far_ones_at(const LossSignature& signature, Case c, double limit, double distance) {
  const Case given = c;
  for (const ReachAxis& axis : signature.reach) {
    if (signature.find_field(axis.field)->quantity == Quantity::logit) continue;
    Tensor& tensor = c.batch.at(axis.field);
    const Tensor* twin = axis.towards.empty() ? nullptr : &given.batch.at(axis.towards);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double centre = twin ? twin->at(i) : 0.0, off = tensor.at(i) - centre;
      if (std::fabs(off) > limit) tensor.set(i, centre + std::copysign(distance, off));
    }
  }
  return c;
}

std::vector<double> lowest_log_probs(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  std::vector<double> lowest;
  for (const std::string& name : log_ratio_fields(signature)) {
    const Tensor& tensor = c.batch.at(name);
    lowest.resize(static_cast<std::size_t>(tensor.size()), 0.0);
    for (std::size_t i = 0; i < lowest.size(); ++i) {
      if (valid[i]) lowest[i] = std::min(lowest[i], tensor.at(static_cast<std::int64_t>(i)));
    }
  }
  return lowest;
}

Case with_lowest_at(const LossSignature& signature, Case c, double least) {
  const std::vector<double> lowest = lowest_log_probs(signature, c);
  for (const std::string& name : log_ratio_fields(signature)) {
    Tensor& tensor = c.batch.at(name);
    for (std::size_t i = 0; i < lowest.size(); ++i) {
      if (!std::isfinite(lowest[i]) || lowest[i] == 0.0) continue;
      const auto at = static_cast<std::int64_t>(i);
      tensor.set(at, tensor.at(at) - lowest[i] + least);
    }
  }
  return c;
}

Case with_farthest_tokens(const LossSignature& signature, Case c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  std::vector<double> distances(valid.size(), -1.0);
  for (const ReachAxis& axis : signature.reach) {
    const Field& field = *signature.find_field(axis.field);
    const bool by_token = is_positional(field) && field.axes.size() == 2;
    if (!by_token) continue;
    for (std::size_t i = 0; i < valid.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double centre = axis.towards.empty() ? 0.0 : c.batch.at(axis.towards).at(at);
      const double distance = std::fabs(c.batch.at(axis.field).at(at) - centre);
      if (valid[i]) distances[i] = std::max(distances[i], distance);
    }
  }
  const auto tokens = static_cast<std::ptrdiff_t>(c.shape.positions());
  for (auto row = distances.begin(); row != distances.end(); row += tokens) {
    const auto farthest = std::max_element(row, row + tokens);
    for (auto at = row; at != row + tokens; ++at) {
      if (at != farthest) mask_position(signature, c, at - distances.begin());
    }
  }
  move_valid_first(signature, c);
  return c;
}

}  // namespace lossgate::properties
