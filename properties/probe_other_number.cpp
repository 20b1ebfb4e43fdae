// SPDX-License-Identifier: Apache-2.0
// A number that an option is taken for, whatever it may stand for: the one with which the formula
// gives the answer.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "properties/option_values.h"
#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Into so many parts a range is divided, and so often its end is halved, as small numbers are of
/// another order; not where anybody's number would lie.
constexpr int kParts = 8;
constexpr double kBeside = 0.618;
/// More often than a number has digits.
constexpr int kHalvings = 64;
/// No axis of a plain case has so many.
constexpr std::int64_t kOtherExtent = 3;
/// Ordinary numbers, and such as lie beyond limits.
constexpr double kSpreads[] = {2.0, 24.0};

/// Numbers of the option in their order, between any two of which another one may lie.
std::vector<double> numbers_of(const Option& option) {
  std::vector<double> numbers = {option.low, option.high};
  for (int i = 0; i < kParts; ++i) {
    numbers.push_back(option.low + (option.high - option.low) * (i + kBeside) / kParts);
    const double smaller = std::ldexp(kBeside * option.high, -i);
    if (smaller > option.low) numbers.push_back(smaller);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// Of the values that are wrong the one that is farthest off, beside what is accepted.
std::optional<ReadEntry> clearest_value(const Reading& reading) {
  std::optional<ReadEntry> clearest;
  for (const ReadEntry& e : reading.entries()) {
    if (!e.wrong() || reading.kind(e) == OutputKind::gradient) continue;
    if (!clearest || e.distance() * clearest->accepted > clearest->distance() * e.accepted) {
      clearest = e;
    }
  }
  return clearest;
}

/// The numbers of the option with which the formula has that entry of the answer.
class Solutions {
 public:
  Solutions(const LossSignature& signature, const Reading& reading, const ReadEntry& entry,
            const Option& option)
      : signature_(signature), reading_(reading), entry_(entry), option_(option) {}

  std::vector<double> all() const {
    std::vector<double> found;
    std::optional<std::pair<double, double>> before;
    for (const double number : numbers_of(option_)) {
      // Whatever a limit is beyond what it bounds, the answer is the same: that is no number of it.
      const auto off = off_by(number);
      const bool beside = off && std::fabs(*off) > entry_.accepted;
      if (before && beside && is_turned(before->second, *off)) {
        found.push_back(between(before->first, number));
      }
      before = beside ? std::optional(std::pair(number, *off)) : std::nullopt;
    }
    return found;
  }

 private:
  static bool is_turned(double one, double other) { return (one < 0.0) != (other < 0.0); }

  /// How far the formula is from the answer with that number.
  std::optional<double> off_by(double number) const {
    const Case c = with_value(signature_, reading_.given(), option_, number);
    for (const ReadEntry& e : reading_.beside(c)) {
      if (e.output == entry_.output && e.index == entry_.index) return e.expected - e.actual;
    }
    return std::nullopt;
  }

  double between(double low, double high) const {
    const bool negative = off_by(low).value_or(0.0) < 0.0;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = 0.5 * (low + high);
      const auto off = off_by(middle);
      if (!off || middle == low || middle == high) break;
      ((*off < 0.0) == negative ? low : high) = middle;
    }
    const double here = std::fabs(off_by(low).value_or(HUGE_VAL)),
                 there = std::fabs(off_by(high).value_or(HUGE_VAL));
    return here < there ? low : high;
  }

  const LossSignature& signature_;
  const Reading& reading_;
  const ReadEntry& entry_;
  const Option& option_;
};

/// Whether the answer is one of a batch of another shape, too: a count that is left out, or is one
/// too many, is another number there.
bool explains_other_shapes(const Suspect& suspect, const LossSpec& spec,
                           const std::function<bool(const Reading&)>& is_it) {
  bool any = false;
  for (const double spread : kSpreads) {
    auto c = suspect.plain_case({.padding = false,
                                 .spread = spread,
                                 .few = {Axis::sequences, Axis::tokens, Axis::vocab},
                                 .at_most = kOtherExtent,
                                 .turn = 1});
    if (c) c->spec = spec;
    const auto reading = suspect.read_if_made(c);
    if (!is_wrong(reading)) continue;
    if (!is_it(*reading)) return false;
    any = true;
  }
  return any;
}

}  // namespace

/// The answer is what the formula gives for another number of one option, the same whatever the
/// other numbers are, and of no other option.
Opinion probe_other_number(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite() || has_one_factor(row_factors(*plain))) {
    return std::nullopt;
  }
  const auto entry = clearest_value(*plain);
  if (!entry) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  const LossSpec& spec = plain->given().spec;
  Opinion only;
  for (const Option& option : options_of_formula(signature)) {
    const OptionValue* own = spec.find(option.name);
    const bool real = option.kind == Option::Kind::real;
    if (!real || !own || !std::holds_alternative<double>(*own)) continue;
    for (const double number : Solutions(signature, *plain, *entry, option).all()) {
      const auto is_it = [&](const Reading& reading) {
        return reading.answers(with_value(signature, reading.given(), option, number));
      };
      if (!suspect.fits(*plain, is_it) || !explains_other_shapes(suspect, spec, is_it)) continue;
      if (only) return std::nullopt;
      std::ostringstream because;
      because << "the answer is that where " << option.name << " is " << number;
      only = Diagnosis{"option misread", 0.95, because.str()};
      break;
    }
  }
  return only;
}

}  // namespace lossgate::properties
