// SPDX-License-Identifier: Apache-2.0
// Whether what is masked between two tokens of a sequence counts as a step from one to the other.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "properties/agreement.h"
#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"
#include "reference/spec/masked.h"

namespace lossgate::properties {
namespace {

/// The tokens of each sequence that count side by side, and behind them those that do not.
Case closed(const LossSignature& signature, const Case& c) {
  Case result = c;
  const std::vector<bool> valid = valid_positions(signature, c);
  const std::int64_t tokens = c.shape[Axis::tokens];
  std::vector<std::int64_t> from;
  for (std::int64_t row = 0; row < c.shape[Axis::sequences]; ++row) {
    for (const bool counts : {true, false}) {
      for (std::int64_t p = row * tokens; p < (row + 1) * tokens; ++p) {
        if (valid[static_cast<std::size_t>(p)] == counts) from.push_back(p);
      }
    }
  }
  for (const Field& field : signature.fields) {
    if (!is_positional(field)) continue;
    const Tensor& given = c.batch.at(field.name);
    Tensor& tensor = result.batch.at(field.name);
    const std::int64_t each = entries_per_position(c, given);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, given.at(from[static_cast<std::size_t>(i / each)] * each + i % each));
    }
  }
  return result;
}

/// Plain numbers with a token masked in the middle of each sequence, and no flag that carries an
/// error to the others; nothing where sequences are too short.
std::optional<Case> with_gap(const Suspect& suspect) {
  auto c = suspect.plain_case({.padding = false});
  if (!c || c->shape[Axis::tokens] < 3) return std::nullopt;
  for (const Option& option : suspect.signature().options) {
    if (option.kind == Option::Kind::flag) c->spec.set(option.name, 0.0);
  }
  const std::int64_t tokens = c->shape[Axis::tokens];
  for (std::int64_t row = 0; row < c->shape[Axis::sequences]; ++row) {
    mask_position(suspect.signature(), *c, row * tokens + tokens / 2);
  }
  return c;
}

/// Whether all that is wrong stands before the gap.
bool is_wrong_before(const Reading& reading) {
  const std::int64_t gap = reading.given().shape[Axis::tokens] / 2;
  return std::ranges::all_of(reading.entries(), [&](const ReadEntry& e) {
    return !e.wrong() ||
           place_of(reading.study(), reading.outputs()[e.output], e.index).token < gap;
  });
}

}  // namespace

/// Of an operation. What stands in the gap makes no difference, or else it leaks.
Opinion probe_gaps(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  if (!signature.reductions.empty() || !has_positions(signature)) return std::nullopt;
  const auto& given = suspect.as_given();
  if (!is_wrong(given) || !given->finite()) return std::nullopt;
  if (!is_right(suspect.read_if_made(closed(signature, given->given())))) return std::nullopt;
  const auto gap = suspect.read_if_made(with_gap(suspect));
  if (!is_wrong(gap) || !gap->finite() || !suspect.fits(*gap, is_wrong_before)) return std::nullopt;
  if (!is_right(suspect.read(closed(signature, gap->given())))) return std::nullopt;
  const auto data = kMaskedFinite.apply(signature, gap->given(), gap->given());
  const auto filled = data ? suspect.read(data->c) : gap;
  const bool alike = filled && std::ranges::equal(gap->entries(), filled->entries(), {},
                                                  &ReadEntry::actual, &ReadEntry::actual);
  if (!alike) return std::nullopt;
  return Diagnosis{"padding counted", 0.9,
                   "right where what is masked between two tokens stands behind the last one"};
}

}  // namespace lossgate::properties
