// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/case_facts.h"
#include "properties/far_numbers.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// A log-ratio whose exponential every format has, the share of what a format's largest number is
/// the exponential of that leaves room for what else a term meets, and a log-ratio beyond any
/// exponent.
constexpr double kTameExponent = 10.0, kExponentWithinFormat = 0.75, kBeyondExponents = 1048576.0;

/// A log-ratio of an ordinary step.
constexpr double kNear = 1.0;

/// As shares of a format's largest exponent: how unlikely a token is where squares of probabilities
/// are ordinary numbers still, and where its own is none but 0.
constexpr double kSquareWithinFormat = 0.375, kNoProbability = 2.0;

/// Of a format's largest number, or of that number's root, what leaves room for a few like it.
constexpr double kRoom = 0.125;

/// Of twice a format's largest number the root's share whose (d / 2) d fits surely.
constexpr double kSurelyFits = 0.99;

/// A limit that ordinary numbers exceed, and a distance at which the widest format overflows not.
constexpr double kLimit = 2.0, kFarthest = 300.0;

/// Impossible tokens become as good as impossible ones, whose squares still overflow; nothing where
/// the fields' format has no such number.
std::optional<Case> without_infinities(const LossSignature& signature, Case c, double largest) {
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::log_prob) continue;
    Tensor& tensor = c.batch.at(field.name);
    const double least = -kRoom * max_finite(tensor.dtype);
    if (least * least <= largest) return std::nullopt;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.at(i) == -HUGE_VAL) tensor.set(i, least);
    }
  }
  return c;
}

/// The first field of a reach axis that is no logit.
const Field* reach_field(const LossSignature& signature) {
  for (const ReachAxis& axis : signature.reach) {
    const Field* field = signature.find_field(axis.field);
    if (field->quantity != Quantity::logit) return field;
  }
  return nullptr;
}

/// Whether every entry of that kind is finite, expected to be or not.
bool all_finite(const Reading& reading, OutputKind kind) {
  return std::ranges::all_of(reading.outputs(), [&](const OutputInfo& output) {
    if (output.kind != kind) return true;
    const Tensor& actual = *reading.result().find(output.name);
    for (std::int64_t i = 0; i < actual.size(); ++i) {
      if (!std::isfinite(actual.at(i))) return false;
    }
    return true;
  });
}

/// Whether what is wrong about the given case is right, or finite at least where it was not, once
/// no number is farther than this.
bool mended_within(const Suspect& suspect, const Reading& wrong, double largest) {
  const auto reading =
      suspect.read(with_far_ones_at(suspect.signature(), wrong.given(), largest, largest));
  return wrong.finite() ? is_right(reading) : is_finite(reading);
}

}  // namespace

std::optional<Reading> wrong_as_given(Suspect& suspect) {
  std::optional<Reading> reading = suspect.as_given();
  if (is_right(reading)) {
    const auto silent = kZeroAdvantage.apply(suspect.signature(), suspect.given(), suspect.given());
    reading = silent ? suspect.read(silent->c) : std::nullopt;
  }
  if (!is_wrong(reading)) return std::nullopt;
  if (const auto plain = zeroed_behind_mask(reading->study(), reading->given())) {
    auto without = suspect.read(*plain);
    if (is_wrong(without)) return without;
  }
  return reading;
}

/// Far beyond a limit the answer is that without it.
Opinion probe_dead_clamp(Suspect& suspect) {
  const auto wrong = wrong_as_given(suspect);
  if (!wrong) return std::nullopt;
  for (const Option& option : suspect.signature().options) {
    if (!option.nullable || option.kind != Option::Kind::real) continue;
    const double limit = std::max(option.low, std::min(option.high, kLimit));
    const Plain far_away = {.spread = std::min(kFarthest, 16.0 * limit)};
    auto c = suspect.plain_case(far_away);
    if (c) c->spec.set(option.name, limit);
    if (c) follow(suspect.signature(), c->spec);
    const auto far = suspect.read(c);
    if (!is_wrong(far)) continue;
    const auto is_without = [&](const Reading& reading) {
      Case without = reading.given();
      without.spec.set(option.name, None{});
      return reading.answers(without);
    };
    if (!suspect.fits(*far, is_without, far_away)) continue;
    const LossSpec& spec = suspect.given().spec;
    const double own = spec.is_none(option.name) ? kTameExponent : spec.number(option.name);
    const bool tied = mended_within(suspect, *wrong, std::min(own, kTameExponent));
    return Diagnosis{"dead clamp", tied ? 0.95 : 0.7,
                     "beyond " + option.name + " the answer is that without it"};
  }
  return std::nullopt;
}

/// What hides a NaN in the value may show it in the gradient.
Opinion probe_repaired_value(Suspect& suspect) {
  const Case& given = suspect.given();
  if (!is_finite(suspect.as_given())) return std::nullopt;
  const auto poisoned = kNanAtValid.apply(suspect.signature(), given, given);
  const auto reading = poisoned ? suspect.read(poisoned->c) : std::nullopt;
  if (!reading || !all_finite(*reading, OutputKind::loss)) return std::nullopt;
  if (all_finite(*reading, OutputKind::gradient)) return std::nullopt;
  return Diagnosis{"value repaired, gradient not", 0.9,
                   "a NaN leaves the loss finite, and the gradient not"};
}

/// Whether values of positions that count are no number where the formula has an exact 0, and there
/// alone: a selection would have been one.
bool is_lost_where_zero(const Reading& reading) {
  bool any = false;
  for (const ReadEntry& e : reading.entries()) {
    if (reading.kind(e) != OutputKind::value || std::isfinite(e.actual)) continue;
    if (!std::isnan(e.actual) || e.expected != 0.0) return false;
    any |= place_of(reading.study(), reading.outputs()[e.output], e.index).valid;
  }
  return any;
}

/// Whether it is lost how unlikely tokens are: of log-probs that are near each other the answer is
/// right, and no number as soon as all of them are so low that no probability is left of any.
bool loses_unlikely_tokens(const Suspect& suspect, const Reading& wrong) {
  const LossSignature& signature = suspect.signature();
  const double exponent = std::log(max_finite(wrong.arithmetic().compute));
  const double likely = -kSquareWithinFormat * exponent;
  const auto is_unlikely = [&](double log_prob) { return log_prob < likely; };
  if (std::ranges::none_of(lowest_log_probs(signature, wrong.given()), is_unlikely)) return false;
  const Case near = with_far_ones_at(signature, wrong.given(), kTameExponent, kTameExponent);
  if (!is_right(suspect.read(with_lowest_at(signature, near, likely)))) return false;
  const auto none = suspect.read(with_lowest_at(signature, near, -kNoProbability * exponent));
  return none && !none->finite();
}

/// Whether it is their product with a large advantage that overflows: right where none is larger
/// than 1, also of log-ratios beyond exp, which is bounded then.
bool overflows_with_advantages(const Suspect& suspect, const Reading& wrong) {
  const LossSignature& signature = suspect.signature();
  const Field* advantage =
      signature.advantage.empty() ? nullptr : signature.find_field(signature.advantage);
  if (!advantage) return false;
  Case c = wrong.given();
  Tensor& tensor = c.batch.at(advantage->name);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (std::fabs(tensor.at(i)) > 1.0) tensor.set(i, std::copysign(1.0, tensor.at(i)));
  }
  const double far = kNoProbability * std::log(max_finite(wrong.arithmetic().compute));
  return is_right(suspect.read(c)) &&
         is_right(suspect.read(with_far_ones_at(signature, c, kNear, far)));
}

/// What is no number at a distance that squares and exponentials of the declared format have room
/// for: several tokens together, of which each has one, or any.
Diagnosis overflow_within_room(const Suspect& suspect, const Case& far) {
  const bool several = has_positions(suspect.signature()) && far.shape.positions() > 1;
  if (several && is_right(suspect.read(with_farthest_tokens(suspect.signature(), far)))) {
    return {"overflow of a square or sum", 0.9,
            "tokens of a sequence have no number together, and the farthest one alone is right"};
  }
  return {"narrow arithmetic", 0.95,
          "it overflows where the declared format has room for squares and exponentials"};
}

/// What is not finite, or would not be if it were farther away, is right where nothing is far.
Opinion probe_exponents(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const Field* field = reach_field(signature);
  if (!field) return std::nullopt;
  auto wrong = wrong_as_given(suspect);
  if (!wrong) return std::nullopt;
  const bool farther = wrong->finite();
  if (farther) {
    if (!mended_within(suspect, *wrong, kTameExponent)) return std::nullopt;
    const double far = 2.0 * std::log(max_finite(wrong->arithmetic().compute));
    wrong = suspect.read(with_far_ones_at(signature, wrong->given(), kTameExponent, far));
    if (!is_wrong(wrong)) return std::nullopt;
    if (wrong->finite()) {
      const double fits = kExponentWithinFormat * std::log(max_finite(wrong->arithmetic().compute));
      if (!mended_within(suspect, *wrong, fits)) return std::nullopt;
      return Diagnosis{"laundering", 0.5,
                       "right where every log-ratio's exp fits, and a number where one overflows"};
    }
  }
  if (!farther && loses_unlikely_tokens(suspect, *wrong)) {
    return Diagnosis{
        "logarithm of an underflow", 0.9,
        "right where tokens are likely, and no number where their probabilities are 0"};
  }
  if (!farther && overflows_with_advantages(suspect, *wrong)) {
    return Diagnosis{"overflow of a square or sum", 0.9,
                     "right where no advantage is larger than 1, however far log-ratios are"};
  }
  const auto right_within = [&](double largest) { return mended_within(suspect, *wrong, largest); };
  if (!right_within(kTameExponent)) return std::nullopt;
  const double largest = max_finite(wrong->arithmetic().compute);
  if (is_right(suspect.read(without_infinities(signature, wrong->given(), largest)))) {
    return Diagnosis{"zero times infinity", 0.9,
                     "right where an impossible token is as good as impossible"};
  }
  const bool squares = field->quantity == Quantity::value;
  const double room =
      squares ? kRoom * std::sqrt(largest) : kExponentWithinFormat * std::log(largest);
  if (!right_within(room)) {
    return overflow_within_room(suspect, with_far_ones_at(signature, wrong->given(), room, room));
  }
  if (!signature.is_logistic() && is_lost_where_zero(*wrong)) {
    return Diagnosis{"zero times infinity", 0.9,
                     "right where nothing is far, and no number where the formula is 0"};
  }
  // In f16 what a square fits is not far beyond what an exponential does.
  if (squares || right_within(std::min(kBeyondExponents, kRoom * std::sqrt(largest)))) {
    // Where half a square does not fit in any form, and the loss is a number, it is behind a bound.
    const double fits = kSurelyFits * std::sqrt(2.0) * std::sqrt(largest);
    if (wrong->forward_finite() && right_within(fits)) return std::nullopt;
    return Diagnosis{"overflow of a square or sum", 0.9,
                     "right where no difference is larger than any exponent"};
  }
  if (signature.is_logistic()) {
    return Diagnosis{"logarithm of an underflow", 0.9, "right where no log-ratio is beyond exp"};
  }
  return Diagnosis{"clamp after exp", wrong->forward_finite() ? 0.9 : 0.7,
                   farther ? "right where log-ratios are near, and overflows where they are farther"
                           : "right where no log-ratio overflows exp"};
}

}  // namespace lossgate::properties
