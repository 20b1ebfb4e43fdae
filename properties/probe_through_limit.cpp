// SPDX-License-Identifier: Apache-2.0
// A limit that holds the value and not its slope, as one that is added behind a detach.
#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "properties/agreement.h"
#include "properties/option_values.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// So many times the limit numbers are apart.
constexpr double kBeyond = 2.5;

/// Whether a gradient flows where the formula's is exactly 0, at positions that count, and nothing
/// else is off by more than rounding: x + (clamp(x) - x) is that of clamp(x), and its slope is not.
bool flows_where_held(const Reading& reading) {
  bool flows = false;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || e.distance() <= kLargestRounding * std::fabs(e.expected)) continue;
    const bool gradient = reading.kind(e) == OutputKind::gradient;
    const Place place = place_of(reading.study(), reading.outputs()[e.output], e.index);
    if (!gradient || !e.exact_zero || !place.valid) return false;
    flows = true;
  }
  return flows;
}

/// Whether the answer is right as soon as the limit is off, or as far away as may be.
bool is_right_without(const Suspect& suspect, const Case& c, const Option& option) {
  const std::vector<OptionValue> values = {None{}, option.high};
  return std::ranges::any_of(values, [&](const OptionValue& value) {
    return is_right(suspect.read(with_value(suspect.signature(), c, option, value)));
  });
}

}  // namespace

/// Beyond a limit a gradient flows where the formula's is exactly 0, of the given case as well; and
/// all is right where the limit is off. What plain numbers show of it needs no limit.
Opinion probe_through_limit(Suspect& suspect) {
  const auto& given = suspect.as_given();
  if (!given || !given->finite() || !flows_where_held(*given)) return std::nullopt;
  if (is_wrong_in_gradients_alone(suspect.plain())) return std::nullopt;
  for (const Option& option : options_of_formula(suspect.signature())) {
    const double* limit = number_of(suspect.given().spec, option);
    if (!option.nullable || option.kind != Option::Kind::real || !limit) continue;
    const Plain beyond = {.spread = kBeyond * *limit};
    const auto wrong = suspect.read_if_made(suspect.plain_case(beyond));
    if (!is_wrong(wrong) || !wrong->finite()) continue;
    const auto is_it = [&](const Reading& reading) {
      return flows_where_held(reading) && is_right_without(suspect, reading.given(), option);
    };
    if (!suspect.fits(*wrong, is_it, beyond)) continue;
    return Diagnosis{"gradient through a clamp", 0.95,
                     "beyond " + option.name + " a gradient flows, and without it all is right"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
