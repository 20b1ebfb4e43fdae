// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// A number is another one's where it is this many times what may be wrong with both.
constexpr double kClear = 8.0;

enum class Likeness { none, of_zeros, of_numbers };

/// What may be wrong with both.
double slack(const ReadEntry& here, const ReadEntry& there) {
  return here.accepted + there.accepted;
}

bool has_number_of(const ReadEntry& here, const ReadEntry& there) {
  return std::fabs(here.actual - there.expected) <= slack(here, there);
}

/// Whether a number of the other entry can be no rounded one of this entry, nor 0.
bool is_told_apart(const ReadEntry& here, const ReadEntry& there) {
  const double apart = std::fabs(here.expected - there.expected);
  return std::fabs(there.expected) > kClear * slack(here, there) &&
         apart > kLargestRounding * std::fabs(there.expected);
}

/// Whether the sequence's entries of one output are those that another one should have.
Likeness has_entries_of_another(const Reading& reading, std::size_t output, std::int64_t sequence) {
  const Extents& extents = reading.outputs()[output].extents;
  const std::int64_t each = element_count(extents) / extents.front();
  std::vector<const ReadEntry*> at(static_cast<std::size_t>(element_count(extents)), nullptr);
  for (const ReadEntry& entry : reading.entries()) {
    if (entry.output == output) at[static_cast<std::size_t>(entry.index)] = &entry;
  }
  Likeness likeness = Likeness::none;
  for (std::int64_t other = 0; other < extents.front(); ++other) {
    if (other == sequence) continue;
    bool same = true, tells = false;
    for (std::int64_t i = 0; i < each && same; ++i) {
      const ReadEntry* here = at[static_cast<std::size_t>(sequence * each + i)];
      const ReadEntry* there = at[static_cast<std::size_t>(other * each + i)];
      same = here && there && has_number_of(*here, *there);
      if (same) tells |= here->wrong() && is_told_apart(*here, *there);
    }
    if (!same) continue;
    if (tells) return Likeness::of_numbers;
    likeness = Likeness::of_zeros;
  }
  return likeness;
}

constexpr std::size_t kOrders = 3;

/// The case with its sequences moved on by one, back by one, and turned round.
std::vector<Case> reordered(const LossSignature& signature, const Case& c) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(c.shape[Axis::sequences]));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<std::int64_t> on = rows, back = rows, round = rows;
  std::ranges::rotate(on, on.begin() + 1);
  std::ranges::rotate(back, back.end() - 1);
  std::ranges::reverse(round);
  std::vector<Case> cases;
  for (const auto& order : {on, back, round}) cases.push_back(batch_of(signature, c, order));
  return cases;
}

/// Where no row of an answer is another one's: are values those of the formula with one field's
/// sequences in another order?
Opinion misplaced_field(const Suspect& suspect) {
  const auto plain = suspect.read(suspect.plain_case({.padding = false}));
  if (!plain || plain->forward_right() || !plain->finite()) return std::nullopt;
  for (const Field& field : suspect.signature().fields) {
    for (std::size_t order = 0; order < kOrders; ++order) {
      const auto is_moved = [&](const Reading& reading) {
        Case other = reading.given();
        const Case c = reordered(suspect.signature(), other)[order];
        Tensor& tensor = other.batch.at(field.name);
        if (tensor == c.batch.at(field.name)) return false;
        tensor = c.batch.at(field.name);
        return reading.answers(other, Reading::Of::values);
      };
      if (!suspect.fits(*plain, is_moved)) continue;
      return Diagnosis{"pairing by position", 0.95,
                       "the answer is that with the sequences of " + field.name + " moved"};
    }
  }
  return std::nullopt;
}

}  // namespace

/// Some sequence has another one's numbers, and no other entry is wrong.
Opinion other_row(const Reading& reading) {
  bool numbers = false;
  for (const ReadEntry& entry : reading.entries()) {
    if (!entry.wrong()) continue;
    const OutputInfo& output = reading.outputs()[entry.output];
    if (!has_rows(output.axes)) return std::nullopt;
    const Place place = place_of(reading.study(), output, entry.index);
    const Likeness likeness = has_entries_of_another(reading, entry.output, place.sequence);
    if (likeness == Likeness::none) return std::nullopt;
    numbers |= likeness == Likeness::of_numbers;
  }
  if (!numbers) return std::nullopt;
  return Diagnosis{"pairing by position", 0.95, "a sequence has the numbers of another one"};
}

Opinion probe_rows(Suspect& suspect) {
  // Sequences of a small case may have the same numbers, and one another's weights.
  const auto is_other = [](const Reading& reading) { return other_row(reading).has_value(); };
  for (const auto* reading : {&suspect.as_given(), &suspect.plain()}) {
    if (*reading && suspect.fits(**reading, is_other)) return other_row(**reading);
  }
  return misplaced_field(suspect);
}

}  // namespace lossgate::properties
