// SPDX-License-Identifier: Apache-2.0
// Sums that overflow where none of their terms does.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

using Terms = std::vector<std::int64_t>;
/// The case with these terms, which are in order, and no other.
using Alone = std::function<Case(const Terms&)>;

/// The positions that count, of all sequences or of one.
Terms counting(const std::vector<bool>& valid, std::int64_t from, std::int64_t to) {
  Terms positions;
  for (std::int64_t p = from; p < to; ++p) {
    if (valid[static_cast<std::size_t>(p)]) positions.push_back(p);
  }
  return positions;
}

bool is_no_number(const std::optional<Reading>& reading) { return reading && !reading->finite(); }

/// Right, but for what a sum in a narrow format rounds.
bool is_number(const std::optional<Reading>& reading) {
  return is_finite(reading) && std::ranges::none_of(reading->entries(), [](const ReadEntry& e) {
           return e.wrong() && !(e.distance() <= kLargestRounding * std::fabs(e.expected));
         });
}

std::pair<Terms, Terms> halves_of(const Terms& terms) {
  const auto middle = terms.begin() + std::ssize(terms) / 2;
  return {{terms.begin(), middle}, {middle, terms.end()}};
}

/// Of terms that have no number together so few that each half of them has one, or a single one.
Terms fewest(const Suspect& suspect, const Alone& alone, Terms terms) {
  while (terms.size() > 1) {
    auto [first, second] = halves_of(terms);
    if (is_no_number(suspect.read_if_made(alone(first)))) {
      terms = std::move(first);
    } else if (is_no_number(suspect.read_if_made(alone(second)))) {
      terms = std::move(second);
    } else {
      break;
    }
  }
  return terms;
}

/// Whether each half of the terms has its number, and one of them in the place of both has none:
/// the larger one twice is as much as both are. What lies between unlike terms is no sum.
bool overflows_in_sum(const Suspect& suspect, const Alone& alone, const Terms& terms) {
  const auto [first, second] = halves_of(terms);
  const Case halves[] = {alone(first), alone(second)};
  const auto has_number = [&](const Case& half) { return is_number(suspect.read_if_made(half)); };
  const auto has_none_twice = [&](const Case& half) {
    Terms rows(static_cast<std::size_t>(2 * half.shape[Axis::sequences]));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i / 2);
    return is_no_number(suspect.read_if_made(batch_of(suspect.signature(), half, rows)));
  };
  return std::ranges::all_of(halves, has_number) && std::ranges::any_of(halves, has_none_twice);
}

Opinion overflow_of(const Suspect& suspect, const Alone& alone, const Terms& terms,
                    const std::string& what) {
  if (!overflows_in_sum(suspect, alone, terms)) return std::nullopt;
  return Diagnosis{"overflow of a square or sum", 0.95,
                   "each half of " + std::to_string(terms.size()) + " " + what +
                       " has its number alone, and one of them twice has none"};
}

}  // namespace

/// No number where several terms count, and that of a part of them: sequences that have no number
/// together, else tokens of a single one. A sum in a narrow format is off on plain numbers as well.
Opinion probe_sum(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  if (signature.reductions.empty()) return std::nullopt;
  const auto wrong = wrong_as_given(suspect);
  if (!is_no_number(wrong)) return std::nullopt;
  // What is no number of ordinary numbers either is no overflow.
  if (const auto& plain = suspect.plain(); !plain || !plain->finite()) return std::nullopt;
  const Case& given = wrong->given();
  const std::vector<bool> valid = valid_positions(signature, given);
  const std::int64_t positions = given.shape.positions();
  Terms rows;  // where nothing counts there is no term, and maybe no divisor
  for (std::int64_t row = 0; row < given.shape[Axis::sequences]; ++row) {
    if (!counting(valid, row * positions, (row + 1) * positions).empty()) rows.push_back(row);
  }
  const Alone sequences = [&](const Terms& kept) { return batch_of(signature, given, kept); };
  if (rows.empty() || !is_no_number(suspect.read_if_made(sequences(rows)))) return std::nullopt;
  rows = fewest(suspect, sequences, std::move(rows));
  if (rows.size() > 1) return overflow_of(suspect, sequences, rows, "sequences");
  if (!has_positions(signature)) return std::nullopt;
  const Case row = sequences(rows);
  const Terms all = counting(valid_positions(signature, row), 0, positions);
  const Alone tokens = [&](const Terms& kept) {
    Case c = row;
    for (const std::int64_t position : all) {
      if (!std::ranges::binary_search(kept, position)) mask_position(signature, c, position);
    }
    return c;
  };
  const Terms few = fewest(suspect, tokens, all);
  return few.size() > 1 ? overflow_of(suspect, tokens, few, "tokens") : std::nullopt;
}

}  // namespace lossgate::properties
