// SPDX-License-Identifier: Apache-2.0
// Tokens that are read beside their place, and tokens at an end that have no part.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "properties/case_facts.h"
#include "properties/causes.h"
#include "properties/probes.h"
#include "properties/transforms.h"
#include "properties/weights.h"
#include "reference/spec/masked.h"

namespace lossgate::properties {
namespace {

using Positions = std::vector<std::int64_t>;

/// What may have been asked in place of the case.
struct Guess {
  std::string because;
  Case c;
  bool moves_gradient = false;  ///< which is no other case's then
};

Case without(const LossSignature& signature, Case c, const Positions& positions) {
  for (const std::int64_t position : positions) mask_position(signature, c, position);
  return c;
}

/// The case without an end of it, as ranges that begin late or end early leave out.
std::vector<Guess> shortened(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const std::int64_t rows = c.shape[Axis::sequences], tokens = c.shape[Axis::tokens];
  Positions first_column, last_column, first_of_each, last_of_each;
  for (std::int64_t row = 0; row < rows; ++row) {
    Positions live;
    for (std::int64_t p = row * tokens; p < (row + 1) * tokens; ++p) {
      if (valid[static_cast<std::size_t>(p)]) live.push_back(p);
    }
    if (live.empty()) continue;
    if (live.front() == row * tokens) first_column.push_back(live.front());
    if (live.back() == (row + 1) * tokens - 1) last_column.push_back(live.back());
    first_of_each.push_back(live.front());
    last_of_each.push_back(live.back());
  }
  return {{"the answer is that without the last column", without(signature, c, last_column)},
          {"the answer is that without the first column", without(signature, c, first_column)},
          {"the answer is that without each sequence's last token",
           without(signature, c, last_of_each)},
          {"the answer is that without each sequence's first token",
           without(signature, c, first_of_each)}};
}

/// The tensor with what stood at a token one token on (+1) or back (-1); what leaves a sequence at
/// one end comes in at the other.
Tensor moved(const Case& c, const Tensor& tensor, std::int64_t by) {
  Tensor result = tensor;
  const std::int64_t tokens = c.shape[Axis::tokens];
  const std::int64_t each = entries_per_position(c, tensor);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t position = i / each, token = position % tokens;
    const std::int64_t from = position - token + (token - by + tokens) % tokens;
    result.set(i, tensor.at(from * each + i % each));
  }
  return result;
}

std::string moved_text(const std::string& field, std::int64_t by) {
  return "the answer is that with " + field + (by > 0 ? " one token on" : " one token back");
}

/// The case with its mask a token beside its place.
std::vector<Guess> with_moved_mask(const LossSignature& signature, const Case& c) {
  std::vector<Guess> guesses;
  if (signature.mask.empty()) return guesses;
  const std::int64_t tokens = c.shape[Axis::tokens];
  for (const std::int64_t by : {-1, 1}) {
    Case other = c;
    Tensor& mask = other.batch.at(signature.mask);
    mask = moved(c, mask, by);
    const std::int64_t entered = by > 0 ? 0 : tokens - 1;
    for (std::int64_t row = 0; row < c.shape[Axis::sequences]; ++row) {
      mask.set(row * tokens + entered, 0.0);
    }
    guesses.push_back({moved_text(signature.mask, by), std::move(other)});
  }
  return guesses;
}

/// The case with one field a token beside its place, wrapped round or with the end left out.
std::vector<Guess> with_moved_field(const LossSignature& signature, const Case& c) {
  std::vector<Guess> guesses;
  const std::int64_t tokens = c.shape[Axis::tokens];
  for (const Field& field : signature.fields) {
    if (!is_positional(field) || field.name == signature.mask) continue;
    for (const std::int64_t by : {-1, 1}) {
      Case other = c;
      Tensor& tensor = other.batch.at(field.name);
      tensor = moved(c, c.batch.at(field.name), by);
      if (tensor == c.batch.at(field.name)) continue;
      Positions entered;
      for (std::int64_t row = 0; row < c.shape[Axis::sequences]; ++row) {
        entered.push_back(row * tokens + (by > 0 ? 0 : tokens - 1));
      }
      const bool leaf = field.role == Role::differentiable;
      guesses.push_back({moved_text(field.name, by), other, leaf});
      guesses.push_back({moved_text(field.name, by) + ", and without the end",
                         without(signature, std::move(other), entered), leaf});
    }
  }
  return guesses;
}

double tokens_of(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  return static_cast<double>(std::ranges::count(valid, true));
}

/// Whether the loss is so many times that of the other case.
bool loss_is(const Reading& reading, const Case& other, double times) {
  const auto entries = reading.beside(other);
  const auto loss = std::ranges::find_if(
      entries, [&](const ReadEntry& e) { return reading.kind(e) == OutputKind::loss; });
  if (loss == entries.end() || loss->expected == 0.0) return false;
  const RowFactor factor{loss->actual / loss->expected,
                         2.0 * loss->accepted / std::fabs(loss->expected)};
  return factor.is(times);
}

/// Whether it is the answer to the other case, or that divided by the tokens that the given one
/// has.
bool answers(const LossSignature& signature, const Reading& reading, const Guess& guess) {
  if (guess.moves_gradient) return reading.answers(guess.c, Reading::Of::values);
  if (reading.answers(guess.c)) return true;
  const double left = tokens_of(signature, guess.c), all = tokens_of(signature, reading.given());
  if (left == all || !loss_is(reading, guess.c, left / all)) return false;
  Case whole = guess.c;
  whole.upstream *= left / all;
  return reading.answers(whole, Reading::Of::gradients);
}

/// Of the guesses that are made of a case, the first that is true of others, too.
Opinion first_that_fits(const Suspect& suspect, const Reading& reading,
                        std::vector<Guess> (*guesses_of)(const LossSignature&, const Case&)) {
  const LossSignature& signature = suspect.signature();
  for (const Guess& guess : guesses_of(signature, reading.given())) {
    const auto is_it = [&](const Reading& each) {
      return std::ranges::any_of(guesses_of(signature, each.given()), [&](const Guess& own) {
        return own.because == guess.because && answers(signature, each, own);
      });
    };
    if (!suspect.fits(reading, is_it)) continue;
    return Diagnosis{"off by one position", 0.95, guess.because};
  }
  return std::nullopt;
}

/// The case without what lies behind so many tokens.
Case cut(const LossSignature& signature, const Case& c, std::int64_t length) {
  Positions behind;
  const std::int64_t tokens = c.shape[Axis::tokens];
  for (std::int64_t p = 0; p < c.shape[Axis::sequences] * tokens; ++p) {
    if (p % tokens >= length) behind.push_back(p);
  }
  return without(signature, c, behind);
}

/// What ends at a length, of which no more are right: an end that is lost is lost of shorter
/// sequences, too.
Opinion cut_off(const Suspect& suspect, const Reading& whole) {
  const LossSignature& signature = suspect.signature();
  for (std::int64_t length = whole.given().shape[Axis::tokens] - 1; length > 0; --length) {
    const auto is_cut = [&](const Reading& each) {
      return answers(signature, each, {.because = "", .c = cut(signature, each.given(), length)});
    };
    if (!suspect.fits(whole, is_cut)) continue;
    const auto shorter =
        suspect.plain_case({.padding = false, .few = {Axis::tokens}, .at_most = length});
    if (!is_right(suspect.read_if_made(shorter))) continue;
    return Diagnosis{std::string(kWrongBeyondALength), 0.95,
                     "the answer is that without what lies behind " + std::to_string(length) +
                         (length > 1 ? " tokens" : " token") + ", and right where nothing does"};
  }
  return std::nullopt;
}

std::vector<Guess> shortened_or_masked(const LossSignature& signature, const Case& c) {
  std::vector<Guess> guesses = shortened(signature, c);
  for (Guess& guess : with_moved_mask(signature, c)) guesses.push_back(std::move(guess));
  return guesses;
}

/// What is right as soon as no sequence ends where the batch does.
Opinion full_rows(const Suspect& suspect, const Reading& reading) {
  const LossSignature& signature = suspect.signature();
  const auto is_mended = [&](const Reading& each) {
    const std::int64_t tokens = each.given().shape[Axis::tokens];
    const auto shorter = suspect.read_if_made(cut(signature, each.given(), tokens - 1));
    return is_right(shorter) && 2 * shorter->numbers() > each.numbers();
  };
  if (!suspect.fits(reading, is_mended)) return std::nullopt;
  return Diagnosis{"full row mistaken", 0.85, "right where nothing counts in the last column"};
}

/// A loss and gradients that are numbers, and another case's.
bool may_be_another_case(const std::optional<Reading>& reading) {
  return is_wrong(reading) && !reading->forward_right() && reading->finite() &&
         reading->given().shape[Axis::tokens] > 1;
}

}  // namespace

Opinion probe_positions(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const auto& plain = suspect.plain();
  if (!has_positions(signature) || !may_be_another_case(plain)) return std::nullopt;
  // Where nothing is masked, what a field moves is told from what its mask does.
  const auto whole = suspect.read(suspect.plain_case({.padding = false}));
  const bool unmasked = may_be_another_case(whole);
  Opinion opinion = unmasked ? cut_off(suspect, *whole) : std::nullopt;
  if (!opinion) opinion = first_that_fits(suspect, *plain, shortened_or_masked);
  if (!opinion && unmasked) opinion = first_that_fits(suspect, *whole, with_moved_field);
  return opinion ? opinion : full_rows(suspect, *plain);
}

}  // namespace lossgate::properties
