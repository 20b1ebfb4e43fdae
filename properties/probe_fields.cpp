// SPDX-License-Identifier: Apache-2.0
// Arguments that stand in each other's place.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// The case with fields exchanged, or with one in the place of another.
struct Guess {
  std::string because;
  Case c;
  bool moves_gradient = false;      ///< which is no other case's then
  std::optional<Case> unless = {};  ///< whose answer it must not be as well
};

using Pair = std::pair<const Field*, const Field*>;

/// Fields of numbers that a caller may take for each other, as they are shaped alike.
std::vector<Pair> alike(const LossSignature& signature, const Case& c) {
  std::vector<Pair> pairs;
  for (const Field& a : signature.fields) {
    for (const Field& b : signature.fields) {
      if (&a == &b) break;
      const Tensor &first = c.batch.at(a.name), &second = c.batch.at(b.name);
      const bool numbers = is_float(first.dtype) && !a.absent && !b.absent;
      const bool masks = a.name == signature.mask || b.name == signature.mask;
      if (!numbers || masks || a.quantity != b.quantity || first == second) continue;
      if (first.dtype != second.dtype || first.extents != second.extents) continue;
      pairs.emplace_back(&b, &a);
    }
  }
  return pairs;
}

bool is_leaf(const Field& field) { return field.role == Role::differentiable; }

std::string names(const Pair& pair) { return pair.first->name + " and " + pair.second->name; }

Case with_exchanged(Case c, const Pair& pair) {
  std::swap(c.batch.at(pair.first->name), c.batch.at(pair.second->name));
  return c;
}

/// Both pairs of the one model, which have gradients, and of the other: what they say of two
/// answers.
std::vector<Guess> exchanged(const std::vector<Pair>& pairs, const Case& c) {
  std::vector<Guess> guesses;
  for (const Pair& pair : pairs) {
    const bool leaf = is_leaf(*pair.first) || is_leaf(*pair.second);
    guesses.push_back({names(pair) + " exchanged", with_exchanged(c, pair), leaf});
  }
  for (const Pair& one : pairs) {
    for (const Pair& other : pairs) {
      const bool models = is_leaf(*one.first) && is_leaf(*one.second) && !is_leaf(*other.first) &&
                          !is_leaf(*other.second) && one.first->quantity == other.first->quantity;
      if (!models) continue;
      guesses.push_back({names(one) + " exchanged, and " + names(other),
                         with_exchanged(with_exchanged(c, one), other), true});
    }
  }
  return guesses;
}

/// Of one model, as a distance from the other's number would become none. Where either may stand
/// for both, what lies between them is left out, and nothing is known of a place.
std::vector<Guess> in_place_of_another(const std::vector<Pair>& pairs, const Case& c) {
  std::vector<Guess> guesses;
  const auto with = [&](const Field& taken, const Field& place) {
    Case other = c;
    other.batch.at(place.name) = c.batch.at(taken.name);
    return other;
  };
  const auto add = [&](const Field& taken, const Field& place) {
    guesses.push_back({taken.name + " in the place of " + place.name, with(taken, place),
                       is_leaf(taken), with(place, taken)});
  };
  for (const auto& [a, b] : pairs) {
    if (is_leaf(*a) != is_leaf(*b)) continue;
    add(*a, *b);
    add(*b, *a);
  }
  return guesses;
}

std::vector<Guess> guesses_of(const LossSignature& signature, const Case& c) {
  const std::vector<Pair> pairs = alike(signature, c);
  std::vector<Guess> all = exchanged(pairs, c);
  for (Guess& guess : in_place_of_another(pairs, c)) all.push_back(std::move(guess));
  return all;
}

bool answers(const Reading& reading, const Guess& guess, const Case& c) {
  return reading.answers(c, guess.moves_gradient ? Reading::Of::values : Reading::Of::everything);
}

}  // namespace

/// The values are those of the formula with fields exchanged, or one for another. What is so by
/// chance of some numbers is not so of others.
Opinion probe_fields(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || plain->forward_right() || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  for (const Guess& guess : guesses_of(signature, plain->given())) {
    if (guess.unless && answers(*plain, guess, *guess.unless)) continue;
    const auto is_it = [&](const Reading& reading) {
      return std::ranges::any_of(guesses_of(signature, reading.given()), [&](const Guess& own) {
        return own.because == guess.because && answers(reading, own, own.c);
      });
    };
    if (!suspect.fits(*plain, is_it)) continue;
    return Diagnosis{"fields exchanged", 0.95, "the answer is that with " + guess.because};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
