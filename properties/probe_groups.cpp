// SPDX-License-Identifier: Apache-2.0
// Which sequences are one group, and of how many: whether the size of another group counts, or the
// number that a group has.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

using Numbers = std::array<int, 4>;

/// Plain numbers in these groups.
std::optional<Reading> grouped(const Suspect& suspect, const Field& field, const Numbers& numbers) {
  auto c = suspect.plain_case({.padding = false});
  if (!c) return std::nullopt;
  Tensor& group = c->batch.at(field.name);
  if (group.size() != std::ssize(numbers)) return std::nullopt;
  for (std::size_t s = 0; s < numbers.size(); ++s) {
    group.set(static_cast<std::int64_t>(s), static_cast<double>(numbers[s]));
  }
  return suspect.read_if_made(c);
}

/// Of a group of three beside one alone, before or behind it: whether one of the three is wrong.
/// Who is alone may be so of its own.
bool is_wrong_beside_another_size(const Suspect& suspect, const Field& field) {
  for (const Numbers& uneven : {Numbers{0, 1, 1, 1}, Numbers{0, 0, 0, 1}}) {
    const auto reading = grouped(suspect, field, uneven);
    if (!is_wrong(reading) || !reading->finite()) continue;
    const auto is_one_of_three = [&](const ReadEntry& e) {
      const OutputInfo& output = reading->outputs()[e.output];
      const std::int64_t s = place_of(reading->study(), output, e.index).sequence;
      return s >= 0 && s < std::ssize(uneven) && uneven[static_cast<std::size_t>(s)] == uneven[1];
    };
    if (std::ranges::any_of(reading->entries(),
                            [&](const ReadEntry& e) { return e.wrong() && is_one_of_three(e); })) {
      return true;
    }
  }
  return false;
}

/// The groups counted from 0, in the order of their numbers; nothing where they are.
std::optional<Case> counted_from_zero(const Field& field, Case c) {
  Tensor& group = c.batch.at(field.name);
  std::set<std::int64_t> numbers;
  for (std::int64_t s = 0; s < group.size(); ++s) numbers.insert(group.integer_at(s));
  if (numbers.empty() || (*numbers.begin() == 0 && *numbers.rbegin() < std::ssize(numbers))) {
    return std::nullopt;
  }
  for (std::int64_t s = 0; s < group.size(); ++s) {
    const auto smaller = std::distance(numbers.begin(), numbers.find(group.integer_at(s)));
    group.set(s, static_cast<double>(smaller));
  }
  return c;
}

}  // namespace

Opinion probe_groups(Suspect& suspect) {
  const Field* field = field_of(suspect.signature(), Quantity::group);
  if (!field) return std::nullopt;
  // Groups of two that lie within each other, and one of all, have no other size beside them.
  if (is_wrong_beside_another_size(suspect, *field) &&
      is_right(grouped(suspect, *field, {0, 1, 0, 1})) &&
      is_right(grouped(suspect, *field, {0, 0, 0, 0}))) {
    return Diagnosis{"wrong divisor", 0.95,
                     "right where groups are as large as each other, wherever their members are"};
  }
  if (is_wrong(suspect.as_given()) &&
      is_right(suspect.read_if_made(counted_from_zero(*field, suspect.given())))) {
    return Diagnosis{"groups mixed up", 0.95, "right where the same groups are counted from 0"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
