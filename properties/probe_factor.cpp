// SPDX-License-Identifier: Apache-2.0
// Whether all of an answer, losses, values and gradients, is the formula's times one number.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// An entry says something of its factor where it is this many times what may be wrong with it; so
/// many must, and factors are the same within that share.
constexpr double kClear = 32.0;
constexpr std::ptrdiff_t kFewest = 3;
constexpr double kSame = 1.0 / 4096;

bool is_all_times(const Reading& reading, double factor) {
  return std::ranges::all_of(reading.entries(), [&](const ReadEntry& e) {
    const double wanted = factor * e.expected;
    const double slack = (1.0 + std::fabs(factor)) * e.accepted + kSame * std::fabs(wanted);
    return std::fabs(e.actual - wanted) <= slack;
  });
}

/// What the clearest entry is multiplied by; 1 where nothing is clear.
double factor_of(const Reading& reading) {
  double factor = 1.0, clearest = kClear;
  std::ptrdiff_t clear = 0;
  for (const ReadEntry& e : reading.entries()) {
    const double clarity = e.accepted > 0.0 ? std::fabs(e.expected) / e.accepted : 0.0;
    clear += clarity > kClear;
    if (!(clarity > clearest)) continue;
    clearest = clarity;
    factor = e.actual / e.expected;
  }
  return clear < kFewest ? 1.0 : factor;
}

}  // namespace

Opinion probe_factor(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const double factor = factor_of(*plain);
  if (factor == 0.0 || std::fabs(factor - 1.0) <= 8.0 * kSame) return std::nullopt;
  const auto is_it = [&](const Reading& reading) { return is_all_times(reading, factor); };
  if (!suspect.fits(*plain, is_it)) return std::nullopt;
  // A quotient of counts is another one in another batch.
  for (const Plain& other : {Plain{.padding = false}, Plain{.length = {{Axis::tokens, 1}}}}) {
    auto c = suspect.plain_case(other);
    if (!c) continue;
    c->spec = plain->given().spec;
    const auto reading = suspect.read_if_made(c);
    if (reading && !is_it(*reading)) return std::nullopt;
  }
  std::ostringstream text;
  text.precision(7);
  text << "all of it is the formula's times " << factor;
  return Diagnosis{"disagrees with the formula", 0.7, text.str()};
}

}  // namespace lossgate::properties
