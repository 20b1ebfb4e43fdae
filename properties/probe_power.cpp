// SPDX-License-Identifier: Apache-2.0
// An option that is a factor too often, or too seldom.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Whether all that is wrong is the formula's times that power of the option.
bool is_off_by(const Reading& reading, const Option& option, double power) {
  if (option.kind != Option::Kind::real || reading.given().spec.is_none(option.name)) return false;
  const double own = reading.given().spec.number(option.name);
  const double factor = own == 0.0 ? 1.0 : std::pow(own, power);
  const RowFactors factors = row_factors(reading);
  return factor != 1.0 && !factors.empty() &&
         std::ranges::all_of(factors, [&](const auto& each) { return each.second.is(factor); });
}

/// What is answered where the option alone is another number; nothing where callers fix it.
std::optional<Reading> with_another(const Suspect& suspect, const Reading& reading,
                                    const Option& option) {
  Case c = reading.given();
  const double own = c.spec.number(option.name);
  for (const double other : {0.75 * own, 1.25 * own}) {
    if (other == 1.0 || other < option.low) continue;
    c.spec.set(option.name, other);
    follow(suspect.signature(), c.spec);
    return suspect.read(c);
  }
  return std::nullopt;
}

/// The option by a power of which all that is wrong is off, wherever it stands; of such as callers
/// fix one by whose number it is, where no other option is to blame.
std::string factor_option(const Suspect& suspect, const Reading& reading) {
  std::string fixed;
  for (const Option& option : suspect.signature().options) {
    for (const double power : {1.0, -1.0, 2.0, -2.0}) {
      const auto is_it = [&](const Reading& each) { return is_off_by(each, option, power); };
      if (!is_it(reading) || !suspect.fits(reading, is_it)) continue;
      const auto moved = with_another(suspect, reading, option);
      if (moved && is_it(*moved)) return option.name;
      if (!moved && fixed.empty()) fixed = option.name;
    }
  }
  return fixed;
}

}  // namespace

Opinion probe_power(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const std::string option = factor_option(suspect, *plain);
  if (option.empty()) return std::nullopt;
  return Diagnosis{"option misread", 0.9, "what is wrong is off by a power of " + option};
}

}  // namespace lossgate::properties
