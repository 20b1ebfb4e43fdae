// SPDX-License-Identifier: Apache-2.0
// What is no number only because a wrong number grows beyond its format, where the formula's does
// not, or to the other end of it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "properties/behind_mask.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Shares of a format's largest number that stand for an infinity.
constexpr double kFar = 0.125, kHalfAsFar = 0.0625;
/// A number that moves by less of itself from the one to the other does not grow with it.
constexpr double kGrows = 1.5;
/// What overflows by itself was larger than this power of the largest number before: factors that
/// are near 1 come after what overflows.
constexpr double kNearLargest = 0.75;
/// The power that makes numbers small enough is known to so many halvings.
constexpr int kHalvings = 24;
/// A share of that power at which a bound of the formula's number fits its format as well.
constexpr double kInside = 63.0 / 64;

bool is_number_of(const Field& field, const Tensor& tensor) {
  return is_float(tensor.dtype) && field.quantity != Quantity::mask;
}

/// The case with that share of the largest number in the place of each infinity.
Case with_infinities_at(const LossSignature& signature, Case c, double share) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_number_of(field, tensor)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double x = tensor.at(i);
      if (std::isinf(x)) tensor.set(i, std::copysign(share * max_finite(tensor.dtype), x));
    }
  }
  return c;
}

double tamed(double x, double power) {
  return std::fabs(x) > 1.0 ? std::copysign(std::pow(std::fabs(x), power), x) : x;
}

/// The case with that power of each number beyond 1, and of what comes from above.
Case with_tamed_numbers(const LossSignature& signature, Case c, double power) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_number_of(field, tensor)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, tamed(tensor.at(i), power));
  }
  c.upstream = tamed(c.upstream, power);
  return c;
}

/// What is answered at the place of the violation, whether or not anything is known of it.
std::optional<double> answered_at(const std::optional<Reading>& reading, const Place& place) {
  const Tensor* tensor = reading ? reading->result().find(place.output) : nullptr;
  const bool inside = tensor && place.index >= 0 && place.index < tensor->size();
  return inside ? std::optional(tensor->at(place.index)) : std::nullopt;
}

bool has_number_at(const std::optional<Reading>& reading, const Place& place) {
  const auto answered = answered_at(reading, place);
  return answered && std::isfinite(*answered);
}

/// The number there, if it is one that no rounding makes wrong.
std::optional<double> wrong_number_at(const std::optional<Reading>& reading, const Place& place) {
  if (!has_number_at(reading, place)) return std::nullopt;
  for (const ReadEntry& e : reading->entries()) {
    if (reading->outputs()[e.output].name != place.output || e.index != place.index) continue;
    const bool wrong = e.wrong() && e.distance() > kLargestRounding * std::fabs(e.actual);
    return wrong ? std::optional(e.actual) : std::nullopt;
  }
  return std::nullopt;
}

double largest_at(const Reading& reading, const Place& place) {
  const Tensor& tensor = *reading.result().find(place.output);
  return std::min(max_finite(tensor.dtype), max_finite(reading.arithmetic().compute));
}

/// Whether the infinity is what wrong numbers tend to as those grow that are infinite in the case.
bool is_limit_of_wrong_ones(const Suspect& suspect, const Case& c, double infinity) {
  if (!std::isinf(infinity)) return false;
  const auto with_them_at = [&](double share) {
    const auto reading = suspect.read_if_made(with_infinities_at(suspect.signature(), c, share));
    return wrong_number_at(reading, suspect.violation().place);
  };
  const auto far = with_them_at(kFar), near = with_them_at(kHalfAsFar);
  if (!far || !near) return false;
  return std::signbit(*far) == std::signbit(infinity) &&
         std::fabs(*far) >= kGrows * std::fabs(*near);
}

/// Whether numbers that are just so tame that there is an answer have a wrong one that is nearly as
/// large as the format's largest: what overflows on the way to a number leaves a smaller one.
bool was_nearly_largest(const Suspect& suspect, const Case& c) {
  const Place& place = suspect.violation().place;
  const auto at_power = [&](double power) {
    return suspect.read_if_made(with_tamed_numbers(suspect.signature(), c, power));
  };
  double with = 0.0, without = 1.0;
  if (!has_number_at(at_power(with), place)) return false;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (without + with);
    (has_number_at(at_power(middle), place) ? with : without) = middle;
  }
  const auto reading = at_power(kInside * with);
  const auto number = wrong_number_at(reading, place);
  return number && std::fabs(*number) >= std::pow(largest_at(*reading, place), kNearLargest);
}

}  // namespace

/// Plain numbers are wrong, and what is no number here is as wrong a number of smaller ones, until
/// its own size overflows. Whatever else may be wrong on the way to it need not be.
Opinion probe_own_overflow(Suspect& suspect) {
  const Place& place = suspect.violation().place;
  const auto& given = suspect.as_given();
  const auto answered = answered_at(given, place);
  if (!answered || std::isfinite(*answered) || !suspect.wrong_on_plain()) return std::nullopt;
  const Case c = zeroed_behind_mask(given->study(), given->given()).value_or(given->given());
  const Case finite = with_infinities_at(suspect.signature(), c, kFar);
  const auto reading = suspect.read_if_made(finite);
  if (!reading) return std::nullopt;
  const bool explained = has_number_at(reading, place)
                             ? is_limit_of_wrong_ones(suspect, c, *answered)
                             : was_nearly_largest(suspect, finite);
  if (!explained) return std::nullopt;
  return Diagnosis{"disagrees with the formula", 0.5,
                   "plain numbers are wrong, too, and so is this one until its own size overflows"};
}

}  // namespace lossgate::properties
