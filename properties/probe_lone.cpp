// SPDX-License-Identifier: Apache-2.0
// Whether what is wrong is so of a group's only member alone.
#include <algorithm>
#include <cstdint>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// Whether no other sequence has the group of the one that the entry is of.
bool is_alone(const Reading& reading, const Tensor& group, const ReadEntry& e) {
  const OutputInfo& output = reading.outputs()[e.output];
  const std::int64_t own = place_of(reading.study(), output, e.index).sequence;
  if (own < 0 || own >= group.size()) return false;
  std::int64_t members = 0;
  for (std::int64_t s = 0; s < group.size(); ++s) {
    members += group.integer_at(s) == group.integer_at(own);
  }
  return members == 1;
}

}  // namespace

/// Of rewards, which are compared with those of their group.
Opinion probe_lone(Suspect& suspect) {
  const Field* field = field_of(suspect.signature(), Quantity::group);
  if (!field || !field_of(suspect.signature(), Quantity::reward)) return std::nullopt;
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const auto is_it = [&](const Reading& reading) {
    const Tensor& group = reading.given().batch.at(field->name);
    bool several = false;  // are there, and right
    for (const ReadEntry& e : reading.entries()) {
      if (is_alone(reading, group, e)) continue;
      if (e.wrong()) return false;
      several |= e.expected != 0.0;
    }
    return several;
  };
  if (!suspect.fits(*plain, is_it)) return std::nullopt;
  return Diagnosis{"single one mistaken", 0.9,
                   "wrong where a group has one member, and right where it has several"};
}

}  // namespace lossgate::properties
