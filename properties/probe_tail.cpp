// SPDX-License-Identifier: Apache-2.0
// What a list of log-probs leaves of a distribution, which is held above a floor: where nothing is
// left there is no logarithm that a floor could hold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// What is listed: far below 1, and above it by more than roundings of any format.
constexpr double kHalf = 0.5, kTooMuch = 1.0625;

/// The list of log-probs; null where there is none.
const Field* list_of(const LossSignature& signature) {
  const auto list = std::ranges::find_if(signature.fields, [](const Field& field) {
    return field.quantity == Quantity::log_prob &&
           std::ranges::find(field.axes, Axis::support) != field.axes.end();
  });
  return list == signature.fields.end() ? nullptr : &*list;
}

/// The logarithm of what a position lists, with repeated tokens.
double log_mass(const Tensor& list, std::int64_t first, std::int64_t support) {
  double largest = -HUGE_VAL, sum = 0.0;
  for (std::int64_t k = 0; k < support; ++k) largest = std::max(largest, list.at(first + k));
  if (!std::isfinite(largest)) return largest;
  for (std::int64_t k = 0; k < support; ++k) sum += std::exp(list.at(first + k) - largest);
  return largest + std::log(sum);
}

/// The case with so much listed at each position that counts and lists more than `from`; nothing
/// where rounding moves the logarithm of that by as much as it is.
std::optional<Case> with_listed(const LossSignature& signature, const Field& field, Case c,
                                double from, double mass) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const std::int64_t support = c.shape[Axis::support];
  Tensor& list = c.batch.at(field.name);
  for (std::int64_t p = 0; p < std::ssize(valid); ++p) {
    const double own = log_mass(list, p * support, support);
    if (!valid[static_cast<std::size_t>(p)] || !(own > std::log(from))) continue;
    for (std::int64_t i = p * support; i < (p + 1) * support; ++i) {
      list.set(i, list.at(i) + std::log(mass) - own);
    }
    const double moved = log_mass(list, p * support, support) - std::log(mass);
    if (!(std::fabs(moved) < std::fabs(std::log(mass)))) return std::nullopt;
  }
  return c;
}

}  // namespace

/// What is no number is right where lists hold half of all; and plain ones lose theirs where they
/// hold more than all. Where they leave less than the floor, and something, it holds or does not.
Opinion probe_tail(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const Field* list = list_of(signature);
  const Option* floor = signature.find_option("tail_floor");
  const auto& given = suspect.as_given();
  if (!list || !floor || !given || given->finite()) return std::nullopt;
  if (!is_right(
          suspect.read_if_made(with_listed(signature, *list, given->given(), kHalf, kHalf)))) {
    return std::nullopt;
  }
  auto c = suspect.plain_case();
  if (!c) return std::nullopt;
  c->spec.set(floor->name, floor->high);
  const auto listing = [&](double mass) {
    return suspect.read_if_made(with_listed(signature, *list, *c, 0.0, mass));
  };
  const auto more = listing(kTooMuch), less = listing(1.0 - 0.5 * floor->high);
  if (!is_right(suspect.read(c)) || !more || more->finite() || !less || !less->finite()) {
    return std::nullopt;
  }
  if (less->right()) {
    return Diagnosis{"clamp after exp", 0.95,
                     "right where a list leaves less than its floor, and no number where it leaves "
                     "nothing"};
  }
  return Diagnosis{"dead clamp", 0.9,
                   "no number where a list leaves nothing, and another one where it leaves less "
                   "than its floor"};
}

}  // namespace lossgate::properties
