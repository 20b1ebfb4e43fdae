// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "properties/behind_mask.h"
#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/unlikely_token.h"

namespace lossgate::properties {
namespace {

/// Below the largest logit of a row: a probability that every format has, and one that none has.
constexpr double kLikely = 10.0, kImpossible = 2000.0;
/// So far below the largest exponent of a format, in nats, a probability is an ordinary number of
/// it still; and on both sides of it exp overflows or not, with more than the logits are rounded
/// by.
constexpr double kOrdinary = 4.0, kBeside = 0.5, kRounded = 0.4;
/// At so many times the largest exponent of a format exp is no number, or none but 0, whatever the
/// temperature.
constexpr double kTimesExponent = 40.0;
/// And at so many times it, of logits that the temperature has divided, exp is 0.
constexpr double kVanished = 2.0;

bool is_logit(const Field& field) {
  return field.quantity == Quantity::logit && !field.axes.empty() &&
         field.axes.back() == Axis::vocab;
}

/// The case with each row of logits changed: `change` gets its entries' values.
std::optional<Case> with_rows(const LossSignature& signature, Case c,
                              const std::function<void(std::vector<double>&)>& change) {
  bool any = false;
  for (const Field& field : signature.fields) {
    if (!is_logit(field)) continue;
    any = true;
    Tensor& tensor = c.batch.at(field.name);
    const std::int64_t vocab = c.shape[Axis::vocab];
    for (std::int64_t from = 0; from < tensor.size(); from += vocab) {
      std::vector<double> row;
      for (std::int64_t v = 0; v < vocab; ++v) row.push_back(tensor.at(from + v));
      change(row);
      for (std::int64_t v = 0; v < vocab; ++v) {
        tensor.set(from + v, row[static_cast<std::size_t>(v)]);
      }
    }
  }
  return any ? std::optional(std::move(c)) : std::nullopt;
}

/// The largest finite logit of a row, 0 where there is none.
double top(const std::vector<double>& row) {
  double largest = -HUGE_VAL;
  for (const double x : row) {
    if (std::isfinite(x)) largest = std::max(largest, x);
  }
  return std::isfinite(largest) ? largest : 0.0;
}

void shift(std::vector<double>& row) {
  const double largest = top(row);
  for (double& x : row) x -= largest;
}

/// The largest becomes `to`.
void lift(std::vector<double>& row, double to) {
  shift(row);
  for (double& x : row) x += to;
}

/// Impossible tokens become as good as impossible ones.
void without_infinities(std::vector<double>& row) {
  const double least = top(row) - kImpossible;
  for (double& x : row) {
    if (x == -HUGE_VAL) x = least;
  }
}

/// What divides the logits, 1 where nothing does.
double temperature(const Suspect& suspect) {
  const Option* option = suspect.signature().find_option("temperature");
  return option ? suspect.given().spec.number(option->name) : 1.0;
}

/// No logit is farther below the largest one.
std::function<void(std::vector<double>&)> squeezed_to(double distance) {
  return [distance](std::vector<double>& row) {
    const double largest = top(row);
    for (double& x : row) x = std::max(x, largest - distance);
  };
}

/// The likeliest token comes first, and whatever names a token follows.
Case likeliest_first(const LossSignature& signature, const Case& c) {
  Case result = c;
  const auto leader = std::ranges::find_if(signature.fields, is_logit);
  const std::int64_t vocab = c.shape[Axis::vocab];
  const Tensor& logits = c.batch.at(leader->name);
  for (std::int64_t position = 0; position * vocab < logits.size(); ++position) {
    const auto logit = [&](std::int64_t v) { return logits.at(position * vocab + v); };
    const std::int64_t first =
        *std::ranges::max_element(std::views::iota(std::int64_t{0}, vocab), {}, logit);
    for (const Field& field : signature.fields) {
      if (!is_positional(field)) continue;
      Tensor& tensor = result.batch.at(field.name);
      const std::int64_t each = entries_per_position(c, tensor);
      if (is_logit(field)) {
        const double a = tensor.at(position * vocab), b = tensor.at(position * vocab + first);
        tensor.set(position * vocab, b);
        tensor.set(position * vocab + first, a);
      } else if (field.quantity == Quantity::label) {
        for (std::int64_t k = 0; k < each; ++k) {
          const std::int64_t at = position * each + k, token = tensor.integer_at(at);
          if (token == 0 || token == first) tensor.set(at, static_cast<double>(first - token));
        }
      }
    }
  }
  return result;
}

/// A token with that surprise; nothing where there is none.
std::optional<Reading> with_surprise(const UnlikelyToken& token, double surprise) {
  auto reading = token.of(surprise);
  const auto reached = surprise_of(reading);
  const bool near = reached && std::fabs(reached->formula - surprise) <= kRounded;
  return near ? std::move(reading) : std::nullopt;
}

/// Whether a token is lost just where the sum of exponentials of all others, beside its own, has no
/// number. Its own exponential may underflow at about that distance, but not of few others and of
/// many, of which the sum is larger; and where 1 / p overflows, in a backward alone, the loss has a
/// number still.
bool is_lost_to_a_sum(const Suspect& suspect, double exponent) {
  return std::ranges::all_of(std::array<std::int64_t, 2>{5, 64}, [&](std::int64_t vocab) {
    const UnlikelyToken token(suspect, vocab);
    const auto beyond = with_surprise(token, exponent + kBeside);
    return is_finite(with_surprise(token, exponent - kBeside)) && beyond &&
           !beyond->forward_finite();
  });
}

/// Whether a token is lost at a bound, or to an exponential that overflows: one that is as unlikely
/// as the largest number of the format is large still has a probability there.
Opinion of_unlikely_token(const Suspect& suspect) {
  const UnlikelyToken token(suspect);
  const auto likely = token.at(kLikely);
  if (!likely) return std::nullopt;
  const double exponent = std::log(max_finite(likely->arithmetic().compute));
  const auto ordinary = with_surprise(token, exponent - kOrdinary);
  if (ordinary && !ordinary->forward_right()) {
    return Diagnosis{
        "undeclared bound", 0.9,
        "wrong of an unlikely token whose probability is no small number of its format"};
  }
  if (!is_lost_to_a_sum(suspect, exponent)) return std::nullopt;
  return Diagnosis{"exp of an unshifted logit", 0.9,
                   "of an ever less likely token the answer is lost where exp overflows"};
}

}  // namespace

Opinion probe_logits(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  if (std::ranges::none_of(signature.fields, is_logit)) return std::nullopt;
  const auto wrong = wrong_as_given(suspect);
  if (!wrong) return std::nullopt;
  const auto mended_by = [&](const std::function<void(std::vector<double>&)>& change) {
    return is_right(suspect.read(with_rows(signature, wrong->given(), change)));
  };
  // Where a number is wrong, a shift that leaves nothing to be wrong says nothing.
  const auto shifted = suspect.read(with_rows(signature, wrong->given(), shift));
  if (is_right(shifted) && (!wrong->finite() || 2 * shifted->numbers() > wrong->numbers())) {
    const auto at = [&](double largest) {
      const auto to = [&](std::vector<double>& row) { lift(row, largest); };
      return suspect.read(with_rows(signature, wrong->given(), to));
    };
    const double far = kTimesExponent * std::log(max_finite(wrong->arithmetic().compute));
    const auto above = at(far), below = at(-far);
    if (!wrong->finite() && is_right(above) && is_right(below)) {
      return Diagnosis{"overflow of a square or sum", 0.9,
                       "right where the largest logits are just beyond any exponent"};
    }
    // A number that is wrong may be so for what a shift hides; exp has none beyond its exponents.
    if (!wrong->finite() || !is_finite(above) || !is_finite(below)) {
      return Diagnosis{"exp of an unshifted logit", wrong->finite() ? 0.6 : 0.95,
                       "right where the largest logit of each row is subtracted before the call"};
    }
  }
  if (mended_by(without_infinities)) {
    if (is_right(suspect.read(likeliest_first(signature, wrong->given())))) {
      return Diagnosis{"infinity minus infinity", 0.95,
                       "right where the likeliest token comes first in the vocabulary"};
    }
    if (wrong->finite()) return std::nullopt;  // another number than is right is no NaN
    if (wrong->forward_finite()) {
      return Diagnosis{"value repaired, gradient not", 0.9,
                       wrong->forward_right()
                           ? "impossible tokens leave the loss right, and the gradient no number"
                           : "impossible tokens leave the loss finite, and the gradient not"};
    }
    return Diagnosis{"zero times infinity", 0.9,
                     "right where an impossible token is as good as impossible"};
  }
  if (!mended_by(squeezed_to(kLikely))) return std::nullopt;
  if (auto opinion = of_unlikely_token(suspect)) return opinion;
  if (!wrong->finite()) {
    if (is_right(suspect.read(likeliest_first(signature, wrong->given())))) {
      return Diagnosis{"exp of an unshifted logit", 0.9,
                       "right where the likeliest token comes first in the vocabulary"};
    }
    return Diagnosis{"logarithm of an underflow", 0.9, "right where no probability underflows"};
  }
  // A number that is as wrong where every probability is one of the format is so for no underflow.
  const double exponent = std::log(max_finite(wrong->arithmetic().compute));
  if (!mended_by(squeezed_to(std::max(kLikely, exponent - kOrdinary)))) return std::nullopt;
  // Nor is one that is right where probabilities are 0 already: it is off by what logits are
  // rounded.
  const double vanished = kVanished * exponent * std::max(1.0, temperature(suspect));
  if (mended_by(squeezed_to(vanished))) return std::nullopt;
  return Diagnosis{"logarithm of an underflow", 0.5, "right where no probability underflows"};
}

}  // namespace lossgate::properties
