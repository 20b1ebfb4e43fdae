// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "fuzz/draw_case.h"

/// Drawing and counting cases, for the tests of this folder.
namespace lossgate::fuzz {

inline Case draw(const LossSignature& signature, Dtype dtype, Profile profile,
                 std::uint64_t index) {
  Choices choices = case_choices(1, signature.id, dtype, profile, index);
  return draw_case(signature, dtype, profile, choices);
}

/// Calls `check(index)` for every entry of the field at a valid position.
template <class Check>
void for_each_valid(const LossSignature& signature, const Case& c, const Field& field,
                    Check check) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const Tensor& tensor = c.batch.at(field.name);
  const bool positional = is_positional(field);
  const std::int64_t row = positional ? tensor.size() / std::ssize(valid) : 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (!positional || valid[static_cast<std::size_t>(i / row)]) check(i);
  }
}

/// What one case shows.
struct Traits {
  std::set<std::string> names;
  void add(bool shown, std::string trait) {
    if (shown) names.insert(std::move(trait));
  }
};

/// How many of `count` cases show each trait that `observe` notes.
template <class Observe>
std::map<std::string, int> census(const LossSignature& signature, Dtype dtype, Profile profile,
                                  int count, Observe observe) {
  std::map<std::string, int> seen;
  for (int i = 0; i < count; ++i) {
    Traits of_case;
    observe(draw(signature, dtype, profile, static_cast<std::uint64_t>(i)), of_case);
    for (const std::string& trait : of_case.names) ++seen[trait];
  }
  return seen;
}

}  // namespace lossgate::fuzz
