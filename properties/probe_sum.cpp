// SPDX-License-Identifier: Apache-2.0
// Sums that overflow where none of their terms does.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// More terms would take more calls than an explanation is worth; a minimal case has a few.
constexpr std::size_t kMostTerms = 16;

/// What a sum may be of, each as a batch of one sequence.
struct Terms {
  const char* each;
  std::vector<Case> alone;
};

Terms by_sequence(const LossSignature& signature, const Case& c,
                  const std::vector<std::int64_t>& rows) {
  Terms terms{"sequence", {}};
  for (const std::int64_t row : rows) terms.alone.push_back(batch_of(signature, c, {row}));
  return terms;
}

Terms by_position(const LossSignature& signature, const std::vector<Case>& sequences) {
  Terms terms{"token", {}};
  for (const Case& sequence : sequences) {
    const std::vector<bool> valid = valid_positions(signature, sequence);
    for (std::size_t kept = 0; kept < valid.size(); ++kept) {
      if (!valid[kept]) continue;
      Case one = sequence;
      for (std::size_t p = 0; p < valid.size(); ++p) {
        if (p != kept) mask_position(signature, one, static_cast<std::int64_t>(p));
      }
      terms.alone.push_back(std::move(one));
    }
  }
  return terms;
}

bool is_no_number(const std::optional<Reading>& reading) { return reading && !reading->finite(); }

/// Whether each term is right by itself, and one of them, as often as there are terms, is no
/// number: together the largest ones are as much as all are. What lies between unlike terms is no
/// sum.
bool overflows_in_sum(const Suspect& suspect, const std::vector<Case>& terms) {
  if (terms.size() < 2 || terms.size() > kMostTerms) return false;
  const auto right_alone = [&](const Case& c) { return is_right(suspect.read_if_made(c)); };
  if (!std::ranges::all_of(terms, right_alone)) return false;
  const std::vector<std::int64_t> copies(terms.size(), 0);
  return std::ranges::any_of(terms, [&](const Case& c) {
    return is_no_number(suspect.read_if_made(batch_of(suspect.signature(), c, copies)));
  });
}

}  // namespace

/// No number where several terms count, and the right one of each alone.
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
  std::vector<std::int64_t> rows;  // where nothing counts there is no term, and maybe no divisor
  for (std::int64_t row = 0; row < given.shape[Axis::sequences]; ++row) {
    const auto from = valid.begin() + row * positions;
    if (std::find(from, from + positions, true) != from + positions) rows.push_back(row);
  }
  if (rows.empty() || rows.size() > kMostTerms) return std::nullopt;
  if (!is_no_number(suspect.read_if_made(batch_of(signature, given, rows)))) return std::nullopt;
  Terms terms = by_sequence(signature, given, rows);
  if (!overflows_in_sum(suspect, terms.alone)) {
    if (signature.mask.empty() && signature.ignore_label.empty()) return std::nullopt;
    terms = by_position(signature, terms.alone);
    if (!overflows_in_sum(suspect, terms.alone)) return std::nullopt;
  }
  return Diagnosis{"overflow of a square or sum", 0.95,
                   "right for each " + std::string(terms.each) +
                       " alone, and no number where one stands in place of all"};
}

}  // namespace lossgate::properties
