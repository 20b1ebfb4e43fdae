// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "properties/option_values.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

constexpr const char* kMisread = "option misread";

bool is_limit(const Option& option) { return option.nullable && option.kind == Option::Kind::real; }

/// Half of a number and twice it, as a 2 that is left out of the formula has it; not where one
/// factor lies on all that is wrong, which any option that divides or multiplies all would explain.
void add_half_and_twice(const LossSpec& spec, const Option& option, const Reading& reading,
                        std::vector<OptionValue>& values) {
  const double* own = number_of(spec, option);
  if (!own || *own == 0.0 || option.kind != Option::Kind::real) return;
  if (has_one_factor(row_factors(reading))) return;
  for (const double value : {0.5 * *own, 2.0 * *own}) values.emplace_back(value);
}

/// A log-ratio that no bound is beyond.
constexpr double kNoBound = 1048576.0;

/// The case with each bound that has a number moved: `move` is told the number, and whether it is
/// the lower bound. Nothing where there are none.
template <class Move>
std::optional<Case> with_bounds(const LossSignature& signature, Case c, Move&& move) {
  bool any = false;
  for (const Option& option : signature.options) {
    const bool below = option.name.ends_with("_low");
    if (!below && !option.name.ends_with("_high")) continue;
    const auto own = number_of(c.spec, option);
    if (!own) continue;
    c.spec.set(option.name, move(*own, below));
    any = true;
  }
  return any ? std::optional(std::move(c)) : std::nullopt;
}

/// Whether the answer is that of the formula with bounds taken around 1, or as distances from it.
bool reads_bounds_around_one(const LossSignature& signature, const Reading& reading) {
  for (const double one : {1.0, -1.0}) {
    const auto around = [&](double own, bool below) { return below ? 1.0 - own : own + one; };
    const auto c = with_bounds(signature, reading.given(), around);
    if (c && reading.answers(*c)) return true;
  }
  return false;
}

/// The distance of a log-ratio from 0 at which its weight has that distance from 1. No log-ratio is
/// that of a weight of 0.
double in_log_ratio(double distance, bool below) {
  if (!below) return std::log1p(distance);
  return distance < 1.0 ? -std::log1p(-distance) : kNoBound;
}

/// The distance of a weight from 1 at which its log-ratio has that distance from 0.
double in_weight(double distance, bool below) {
  return below ? -std::expm1(-distance) : std::expm1(distance);
}

/// Whether the answer is that of the formula whose bounds hold what the other one's would: a weight
/// in the place of its log-ratio, or the other way round.
bool reads_bounds_in_another_scale(const LossSignature& signature, const Reading& reading) {
  for (const auto& scale : {in_log_ratio, in_weight}) {
    const auto c = with_bounds(signature, reading.given(), scale);
    if (c && reading.answers_beyond_ranges(*c)) return true;
  }
  return false;
}

/// Whether the other case takes for right what is right of the given one: then it takes whatever
/// lies between, and shows nothing [a ratio of 1 and a bound of 1, where either slope is right].
bool takes_right_numbers(const Reading& given, const Case& other) {
  return std::ranges::equal(given.entries(), given.beside(other),
                            [](const ReadEntry& own, const ReadEntry& there) {
                              return std::fabs(own.expected - there.expected) <= there.accepted;
                            });
}

/// Whether the formula has other numbers there: what it does not feel makes no NaN of one.
bool feels(const Reading& given, const Case& other) { return !takes_right_numbers(given, other); }

}  // namespace

/// The answer is what the formula gives for another value of an option, of the given case, too:
/// plain numbers that lie far apart may be held by one of several bounds.
Opinion probe_options(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  for (const Option& option : options_of_formula(signature)) {
    std::vector<OptionValue> values = other_values(signature, plain->given().spec, option);
    add_half_and_twice(plain->given().spec, option, *plain, values);
    for (const OptionValue& value : values) {
      const auto with_it = [&](const Reading& reading) {
        Case other = reading.given();
        other.spec.set(option.name, value);
        return other;
      };
      const auto is_it = [&](const Reading& reading) { return reading.answers(with_it(reading)); };
      if (!suspect.fits(*plain, is_it) || takes_right_numbers(*plain, with_it(*plain))) continue;
      const auto& given = suspect.as_given();
      if (is_wrong(given) && !(given->finite() ? is_it(*given) : feels(*given, with_it(*given)))) {
        continue;
      }
      const bool off = is_limit(option) && std::holds_alternative<None>(value);
      return Diagnosis{off ? "dead clamp" : kMisread, 0.95,
                       "the answer is that of another value of " + option.name};
    }
  }
  const auto around_one = [&](const Reading& reading) {
    return reads_bounds_around_one(signature, reading);
  };
  if (suspect.fits(*plain, around_one)) {
    return Diagnosis{kMisread, 0.95, "bounds of a weight are taken for distances from 1"};
  }
  const auto in_another_scale = [&](const Reading& reading) {
    return reads_bounds_in_another_scale(signature, reading);
  };
  if (suspect.fits(*plain, in_another_scale)) {
    return Diagnosis{kMisread, 0.95,
                     "bounds of a weight are taken for those of its logarithm, or these for them"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
