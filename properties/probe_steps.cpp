// SPDX-License-Identifier: Apache-2.0
// Options that were rounded to fewer digits than numbers are computed in: the answer goes in steps.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "properties/option_values.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Shares of itself by which a number moves: 16 bits mostly round the first away, and no format the
/// second.
constexpr double kStep = 1.0 / 32768, kStride = 1.0 / 16;

/// Of the numbers by which the formula tells two cases apart, how many does the answer?
struct Told {
  int formula = 0, answer = 0;
};

Told told(const Reading& one, const std::optional<Reading>& other) {
  Told result;
  if (!other || other->entries().size() != one.entries().size()) return result;
  for (std::size_t i = 0; i < one.entries().size(); ++i) {
    const ReadEntry &a = one.entries()[i], &b = other->entries()[i];
    if (std::fabs(a.expected - b.expected) <= a.accepted + b.accepted) continue;
    ++result.formula;
    result.answer += a.actual != b.actual;
  }
  return result;
}

/// The case with that number of the option; nothing where it may not be.
std::optional<Case> with_number(const LossSignature& signature, Case c, const Option& option,
                                double number) {
  if (number < option.low || number > option.high) return std::nullopt;
  return with_value(signature, std::move(c), option, number);
}

/// Whether the answer is the same where the option moves little, either way, and another one where
/// it moves more.
bool goes_in_steps(const Suspect& suspect, const Reading& reading, const Option& option) {
  const double own = *number_of(reading.given().spec, option);
  int felt = 0;
  for (const double sign : {-1.0, 1.0}) {
    const auto moved = [&](double share) {
      const double number = own * (1.0 + sign * share);
      return told(reading,
                  suspect.read(with_number(suspect.signature(), reading.given(), option, number)));
    };
    const Told little = moved(kStep);
    if (little.answer > 0) return false;
    if (little.formula == 0) continue;
    if (moved(kStride).answer == 0) return false;
    ++felt;
  }
  return felt > 0;
}

/// Whether the answer feels it where all numbers move little: what is narrow throughout does not.
bool feels_numbers(const Suspect& suspect, const Reading& reading) {
  Case c = reading.given();
  for (const Field& field : suspect.signature().fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, (1.0 + kStep) * tensor.at(i));
  }
  const Told all = told(reading, suspect.read(c));
  return all.formula > 0 && 8 * all.answer >= 7 * all.formula;
}

/// Whether all that is wrong may be rounding, beside the largest number of its output.
bool is_off_by_little(const Reading& reading) {
  std::map<std::size_t, double> largest;
  for (const ReadEntry& e : reading.entries()) {
    largest[e.output] = std::max(largest[e.output], std::fabs(e.expected));
  }
  return std::ranges::all_of(reading.entries(), [&](const ReadEntry& e) {
    return !e.wrong() || e.distance() <= kLargestRounding * largest[e.output];
  });
}

}  // namespace

/// The answer stays the same where an option moves little, and not where it moves more, nor where
/// all numbers move as little: the option alone has fewer digits than they have.
Opinion probe_steps(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite() || !is_off_by_little(*plain)) return std::nullopt;
  for (const Option& option : suspect.signature().options) {
    const double* own = number_of(plain->given().spec, option);
    if (option.kind != Option::Kind::real || !own || *own == 0.0) continue;
    if (!goes_in_steps(suspect, *plain, option) || !feels_numbers(suspect, *plain)) continue;
    return Diagnosis{"narrow arithmetic", 0.95,
                     "the answer stays the same where " + option.name +
                         " moves by a 32768th of itself, and not by a 16th: it is rounded"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
