// SPDX-License-Identifier: Apache-2.0
// What an answer has made of the difference of two log-probs: the other sign, or another mean. And
// a divergence of two distributions, the other way round.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

constexpr const char* kExchanged = "distributions exchanged";

/// How many tokens of each sequence count, of the longest one's: powers of two, as shares are.
constexpr std::int64_t kLengths[] = {4, 2, 1, 4}, kLongest = 4;

/// What a difference may have become, as a multiple of what it should be.
struct Guess {
  const char* cause;
  double (*share)(double tokens, double positions);  ///< of its sequence
  const char* because;                               ///< behind the names of both
};

const Guess kGuesses[] = {
    {kExchanged, [](double, double) { return -1.0; },
     "exchanged in their difference; what is linear in it, as k1, has the other sign"},
    {"padding counted", [](double tokens, double positions) { return tokens / positions; },
     "less far apart, as the mean over a sequence is where masked positions count"},
    {"wrong divisor", [](double tokens, double) { return tokens; },
     "farther apart, as where a sequence's differences are added up"},
};

/// Of few digits: what is asked in place of such a case is it to the last bit.
Plain few_digits() {
  return {.padding = false,
          .spread = 1.0,
          .few = {Axis::tokens},
          .at_most = kLongest,
          .few_digits = true};
}

std::optional<Case> case_of_few_digits(const Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  auto c = suspect.plain_case(few_digits());
  if (!c) return std::nullopt;
  const bool ragged =
      c->shape[Axis::tokens] == kLongest && c->shape[Axis::sequences] == std::ssize(kLengths);
  for (std::int64_t row = 0; ragged && row < std::ssize(kLengths); ++row) {
    for (std::int64_t t = kLengths[row]; t < kLongest; ++t) {
      mask_position(signature, *c, row * kLongest + t);
    }
  }
  return c;
}

/// Whether the field and what it moves towards are log-probs of the same tokens.
bool is_log_ratio(const LossSignature& signature, const ReachAxis& axis) {
  if (axis.towards.empty()) return false;
  const Field &field = *signature.find_field(axis.field),
              &twin = *signature.find_field(axis.towards);
  return field.quantity == Quantity::log_prob && twin.quantity == Quantity::log_prob &&
         is_positional(field) && is_positional(twin) && field.axes == twin.axes;
}

/// The case with the field so many times as far from its twin, where a position counts. The twin,
/// which has a gradient, stays.
Case with_distances(const Reading& reading, const ReachAxis& axis, const Guess& guess) {
  Case c = reading.given();
  Tensor& tensor = c.batch.at(axis.field);
  const Tensor& twin = reading.given().batch.at(axis.towards);
  const BatchCounts counts(reading.study());
  const std::int64_t tokens = c.shape[Axis::tokens];
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t row = i / tokens;
    if (!reading.study().valid(row, i % tokens)) continue;
    const double own = counts.row_tokens[static_cast<std::size_t>(row)];
    const double share = guess.share(own, static_cast<double>(tokens));
    tensor.set(i, twin.at(i) + share * (tensor.at(i) - twin.at(i)));
  }
  return c;
}

/// Of two distributions an option may weigh; between its ends it says as well which is which.
bool is_mixture(const LossSignature& signature, const LossSpec& spec) {
  return std::ranges::any_of(signature.options, [&](const Option& option) {
    if (option.kind != Option::Kind::real || option.low != 0.0 || option.high != 1.0) return false;
    const OptionValue* value = spec.find(option.name);
    const auto* share = value ? std::get_if<double>(value) : nullptr;
    return share && *share > 0.0 && *share < 1.0;
  });
}

/// The case with what one model gave and what the other did exchanged, where the fields of both are
/// alike: those with gradients, and as many constant ones.
std::optional<Case> with_models_exchanged(const LossSignature& signature, const Case& c) {
  std::vector<const Field*> one, other;
  for (const Field& field : signature.fields) {
    if (!is_float(c.batch.at(field.name).dtype) || field.name == signature.mask) continue;
    (field.role == Role::differentiable ? one : other).push_back(&field);
  }
  const bool alike = std::ranges::equal(one, other, [&](const Field* a, const Field* b) {
    const Tensor &first = c.batch.at(a->name), &second = c.batch.at(b->name);
    return a->quantity == b->quantity && a->quantity != Quantity::log_prob && a->axes == b->axes &&
           first.dtype == second.dtype && first.extents == second.extents;
  });
  if (one.empty() || !alike) return std::nullopt;
  Case exchanged = c;
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::swap(exchanged.batch.at(one[i]->name), exchanged.batch.at(other[i]->name));
  }
  return exchanged;
}

Opinion reversed_divergence(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || plain->forward_right() || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  if (is_mixture(signature, plain->given().spec)) return std::nullopt;
  const auto is_exchanged = [&](const Reading& reading) {
    const auto exchanged = with_models_exchanged(signature, reading.given());
    return exchanged && reading.answers(*exchanged, Reading::Of::values);
  };
  if (!suspect.fits(*plain, is_exchanged)) return std::nullopt;
  return Diagnosis{kExchanged, 0.95, "the answer is that with both models exchanged"};
}

}  // namespace

/// The values are those of the formula with a difference that is another multiple, or with two
/// models exchanged. Their gradient is no other case's.
Opinion probe_differences(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const bool any = std::ranges::any_of(
      signature.reach, [&](const ReachAxis& axis) { return is_log_ratio(signature, axis); });
  if (!any) return reversed_divergence(suspect);
  const auto wrong = suspect.read(case_of_few_digits(suspect));
  if (!is_wrong(wrong) || wrong->forward_right() || !wrong->finite()) return std::nullopt;
  for (const Guess& guess : kGuesses) {
    for (const ReachAxis& axis : signature.reach) {
      if (!is_log_ratio(signature, axis)) continue;
      const auto is_it = [&](const Reading& reading) {
        const Case other = with_distances(reading, axis, guess);
        return other.batch != reading.given().batch && reading.answers(other, Reading::Of::values);
      };
      if (!suspect.fits(*wrong, is_it, few_digits())) continue;
      return Diagnosis{
          guess.cause, 0.95,
          "the answer is that with " + axis.field + " and " + axis.towards + " " + guess.because};
    }
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
