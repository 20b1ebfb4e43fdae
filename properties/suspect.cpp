// SPDX-License-Identifier: Apache-2.0
#include "properties/suspect.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/probes.h"
#include "properties/transforms.h"
#include "reference/spec/contract.h"
#include "reference/spec/formats.h"

namespace lossgate::properties {
namespace {

/// The specification with each of the other reductions that the loss has, as such or by an option.
std::vector<LossSpec> other_reductions(const LossSignature& signature, const LossSpec& spec) {
  std::vector<LossSpec> specs;
  for (const Reduction reduction : signature.reductions) {
    if (reduction == spec.reduction) continue;
    specs.push_back(spec);
    specs.back().reduction = reduction;
  }
  for (const Option& option : signature.options) {
    for (const std::string& choice : option.choices) {
      if (!parse_reduction(choice) || spec.choice(option.name) == choice) continue;
      specs.push_back(spec);
      specs.back().set(option.name, choice);
    }
  }
  return specs;
}

/// A log-ratio that no bound of a weight is beyond.
constexpr double kBeyondBounds = 24.0;

/// Cases with other numbers of which an explanation must be true, and how far apart these are in
/// the second half of them, so that larger bounds matter.
constexpr int kOtherTurns = 4;
constexpr double kWideSpread = 8.0;

/// By so much of itself an error may be another one of numbers that were rounded to another format.
constexpr double kOfRounding = 0.25;

/// Whether an entry of one format is off as that of the other is, but for what is accepted there.
bool is_off_alike(const ReadEntry& wide, const ReadEntry& own) {
  const double one = wide.actual - wide.expected, other = own.actual - own.expected;
  if (!std::isfinite(one) || !std::isfinite(other)) {
    return std::isfinite(one) == std::isfinite(other);
  }
  return std::fabs(one - other) <= 2.0 * own.accepted + kOfRounding * std::fabs(one);
}

/// Whether most of what is wrong of one answer is not so of that to the same numbers in another
/// format.
bool is_otherwise(const Reading& wide, const Reading& own) {
  int alike = 0, otherwise = 0;
  for (const ReadEntry& e : wide.entries()) {
    if (!e.wrong()) continue;
    const auto twin = std::ranges::find_if(own.entries(), [&](const ReadEntry& o) {
      return o.output == e.output && o.index == e.index;
    });
    if (twin == own.entries().end()) continue;
    ++(is_off_alike(e, *twin) ? alike : otherwise);
  }
  return otherwise > alike;
}

}  // namespace

/// What rounding does differs from format to format by itself.
bool Suspect::widest_is_another() const {
  if (widest_is_another_) return *widest_is_another_;
  widest_is_another_ = false;
  if (float_dtype(signature(), given()) == kWidestFormat) return false;
  const auto wide = read(properties::plain_case(signature(), given(), {.dtype = kWidestFormat}));
  if (!is_wrong(wide) || is_erratic(*this, *wide)) return false;
  const auto own = read(properties::plain_case(signature(), given()));
  widest_is_another_ = own && is_otherwise(*wide, *own);
  return *widest_is_another_;
}

std::optional<Case> Suspect::plain_case(Plain plain) const {
  const auto supported = [&](const std::optional<Case>& c) {
    return c && !(implementation().unsupported && implementation().unsupported(*c));
  };
  if (!plain.dtype && !widest_is_another()) {
    plain.dtype = kWidestFormat;
    auto wide = properties::plain_case(signature(), given(), plain);
    if (supported(wide)) return wide;
    plain.dtype = std::nullopt;
  }
  auto c = properties::plain_case(signature(), given(), plain);
  return supported(c) ? c : std::nullopt;
}

std::optional<Reading> Suspect::read_if_made(const std::optional<Case>& c) const {
  return c && keeps_to_contract(signature(), *c) ? read(c) : std::nullopt;
}

bool Suspect::fits(const Reading& reading, const std::function<bool(const Reading&)>& fit,
                   Plain plain) const {
  if (!fit(reading)) return false;
  for (plain.turn = 1; plain.turn <= kOtherTurns; ++plain.turn) {
    if (2 * plain.turn > kOtherTurns) plain.spread = std::max(plain.spread, kWideSpread);
    const auto other = read_if_made(with_other_numbers(signature(), reading.given(), plain));
    if (is_wrong(other) && other->finite() && !fit(*other)) return false;
  }
  return true;
}

const std::optional<Reading>& Suspect::plain() {
  if (plain_) return *plain_;
  plain_.emplace();
  std::optional<Reading>& reading = *plain_;
  auto c = plain_case();
  if (!c) return *plain_ = as_given();
  reading = read(c);
  // Of both halves of it as many tokens count.
  if (is_right(reading) && c->shape[Axis::sequences] == 4) {
    auto dealt = read_if_made(batch_of(signature(), *c, {0, 2, 1, 3}));
    if (is_wrong(dealt) && dealt->finite()) reading = std::move(dealt);
  }
  // Bounds that ordinary numbers keep: a logistic loss has none.
  if (is_right(reading) && !signature().is_logistic()) {
    auto far = read(plain_case({.spread = kBeyondBounds}));
    if (is_wrong(far) && far->finite()) reading = std::move(far);
  }
  for (const LossSpec& spec : other_reductions(signature(), c->spec)) {
    if (!is_right(reading)) break;
    c->spec = spec;
    if (auto other = read(c); is_wrong(other)) reading = std::move(other);
  }
  if (is_wrong(reading) && !signature().coefficient.empty()) {
    c = reading->given();
    c->spec.set(signature().coefficient, 0.0);
    if (auto alone = read(c); is_wrong(alone)) reading = std::move(alone);
  }
  return *plain_;
}

bool Suspect::wrong_on_plain() { return plain_case() && is_wrong(plain()) && plain()->finite(); }

bool Suspect::wrong_in_values() {
  if (violation().has_numbers() && !violation().place.in_gradient()) return true;
  return is_wrong(as_given()) && !is_wrong_in_gradients_alone(as_given());
}

const std::optional<Reading>& Suspect::as_given() {
  if (!as_given_) as_given_ = read(given());
  return *as_given_;
}

}  // namespace lossgate::properties
