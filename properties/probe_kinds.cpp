// SPDX-License-Identifier: Apache-2.0
// Batches whose sequences are of two kinds.
#include <optional>
#include <string>

#include "properties/probes.h"
#include "reference/spec/kinds.h"

namespace lossgate::properties {
namespace {

Case of_one_kind(Case c, const std::string& field, bool kind) {
  Tensor& tensor = c.batch.at(field);
  for (std::int64_t s = 0; s < tensor.size(); ++s) tensor.set(s, static_cast<double>(kind));
  return c;
}

}  // namespace

/// Plain numbers of both kinds, then of either one alone.
Opinion probe_kinds(Suspect& suspect) {
  for (const Field& field : suspect.signature().fields) {
    if (!tells_kinds(field)) continue;
    const std::optional<Case> both = suspect.plain_case();
    if (!both || !is_finite(suspect.read(both))) continue;
    for (const bool kind : {false, true}) {
      const auto alone = suspect.read(of_one_kind(*both, field.name, kind));
      if (!alone || alone->finite()) continue;
      return Diagnosis{"empty divisor", 0.95,
                       "where " + field.name + " is " + std::to_string(kind) +
                           " of every sequence, plain numbers give no number"};
    }
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
