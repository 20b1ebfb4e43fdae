// SPDX-License-Identifier: Apache-2.0
// A limit of what is made of all of a sequence's numbers that each of them was held to.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "properties/option_values.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// So many times the limit numbers are apart, and so many choices of them are tried: a mean may be
/// within a clip whatever its numbers are.
constexpr double kBeyond = 1.5;
constexpr int kTurns = 2;

/// The case in which nothing is farther from its twin than the limit.
Case within(Case c, const ReachAxis& axis, double limit) {
  const Tensor& twin = c.batch.at(axis.towards);
  Tensor& field = c.batch.at(axis.field);
  for (std::int64_t i = 0; i < std::min(field.size(), twin.size()); ++i) {
    field.set(i, twin.at(i) - std::clamp(twin.at(i) - field.at(i), -limit, limit));
  }
  return c;
}

/// Whether the values are those of that case.
bool is_within(const Reading& reading, const ReachAxis& axis, double limit) {
  return reading.forward_right() ||
         reading.answers(within(reading.given(), axis, limit), Reading::Of::values);
}

/// What is answered to plain numbers of which values are wrong.
std::optional<Reading> wrong_values(const Suspect& suspect, Plain plain) {
  for (plain.turn = 0; plain.turn < kTurns; ++plain.turn) {
    auto reading = suspect.read_if_made(suspect.plain_case(plain));
    if (reading && !reading->forward_right() && reading->finite()) return reading;
  }
  return std::nullopt;
}

/// Whether values are right where a sequence's numbers are one, whatever it is: one may be within.
bool is_right_of_one(const Suspect& suspect, Plain plain) {
  plain.few = {Axis::tokens};
  for (plain.turn = 0; plain.turn < kTurns; ++plain.turn) {
    const auto reading = suspect.read_if_made(suspect.plain_case(plain));
    if (!reading || !reading->forward_right()) return false;
  }
  return true;
}

}  // namespace

/// Values are those of numbers each of which is held to the limit, which are others where the
/// formula holds what is made of them to it; of the given case, too, and not where there is one.
Opinion probe_early_clamp(Suspect& suspect) {
  const auto& given = suspect.as_given();
  const bool known = is_wrong(given) && given->finite();
  for (const Option& option : suspect.signature().options) {
    const double* limit = number_of(suspect.given().spec, option);
    if (!option.nullable || option.kind != Option::Kind::real || !limit) continue;
    const Plain beyond{.spread = kBeyond * *limit};
    const auto wrong = wrong_values(suspect, beyond);
    if (!wrong || !is_right_of_one(suspect, beyond)) continue;
    for (const ReachAxis& axis : suspect.signature().reach) {
      if (axis.towards.empty()) continue;
      const auto is_it = [&](const Reading& reading) { return is_within(reading, axis, *limit); };
      if ((known && !is_it(*given)) || !suspect.fits(*wrong, is_it, beyond)) continue;
      return Diagnosis{"dead clamp", 0.95,
                       option.name + " bounds each " + axis.name +
                           ", where the formula bounds what is made of all of them"};
    }
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
