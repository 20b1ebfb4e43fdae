// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "properties/agreement.h"
#include "properties/behind_mask.h"
#include "properties/case_facts.h"
#include "properties/sentinels.h"
#include "reference/spec/masked.h"

namespace lossgate::properties {
namespace {

/// The case with this number at every entry of float fields, or of one alone, that the mask
/// silences, where callers may leave it.
std::optional<Case> filled_behind_mask(const LossSignature& signature, Case c, double filler,
                                       std::string_view alone = "") {
  if (!has_positions(signature)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, c);
  bool changed = false;
  std::int64_t ordinal = 0;
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    ++ordinal;
    if (!is_positional(field) || !is_float(tensor.dtype)) continue;
    if (!alone.empty() && field.name != alone) continue;
    const std::int64_t each = entries_per_position(c, tensor);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (valid[static_cast<std::size_t>(i / each)]) continue;
      // Not one number for all: a difference or a softmax of equal ones says nothing.
      const double own = filler * (1.0 + 0.125 * static_cast<double>((i + 2 * ordinal) % 5));
      if (!keeps_to(field.masked, field.quantity, own)) continue;
      tensor.set(i, own);
      changed = true;
    }
  }
  return changed ? std::optional(std::move(c)) : std::nullopt;
}

/// Which outputs are different, by more than the sign of a zero.
std::set<OutputKind> different_outputs(const Reading& a, const Reading& b) {
  std::set<OutputKind> kinds;
  for (const OutputInfo& output : a.outputs()) {
    const Tensor &first = *a.result().find(output.name), &second = *b.result().find(output.name);
    for (std::int64_t i = 0; i < first.size(); ++i) {
      const double x = first.at(i), y = second.at(i);
      if (x != y && !(std::isnan(x) && std::isnan(y))) kinds.insert(output.kind);
    }
  }
  return kinds;
}

bool moves_masked_gradient(const Reading& reading) {
  return std::ranges::any_of(reading.entries(), [&](const ReadEntry& e) {
    const OutputInfo& output = reading.outputs()[e.output];
    if (output.kind != OutputKind::gradient || e.actual == 0.0) return false;
    return !place_of(reading.study(), output, e.index).valid;
  });
}

/// Every term in the loss: a term that is off would hide what it does.
LossSpec with_all_terms(const LossSignature& signature, LossSpec spec) {
  for (const Option& option : signature.options) {
    const bool off = option.kind == Option::Kind::real && option.low == 0.0 && !option.nullable &&
                     spec.find(option.name) && spec.number(option.name) == 0.0;
    if (off) spec.set(option.name, std::min(option.high, 0.25));
  }
  return spec;
}

/// Whether minus infinity behind the mask, in all fields or in one, makes the answer right.
bool right_with_sentinel(const Suspect& suspect, const Case& c) {
  std::vector<std::string_view> fields = {""};
  for (const Field& field : suspect.signature().fields) fields.push_back(field.name);
  return std::ranges::any_of(fields, [&](std::string_view field) {
    return is_right(suspect.read(filled_behind_mask(suspect.signature(), c, -HUGE_VAL, field)));
  });
}

/// Where no plain case can be made: is every wrong number one that the formula has as a filler, and
/// the answer's are no filler?
Opinion data_for_filler(Suspect& suspect) {
  const auto& given = suspect.as_given();
  if (!is_wrong(given)) return std::nullopt;
  std::set<double> fillers, numbers;
  for (const ReadEntry& e : given->entries()) {
    if (!e.wrong()) continue;
    fillers.insert(e.expected);
    numbers.insert(e.actual);
  }
  if (fillers.size() > 2 || numbers.size() <= fillers.size()) return std::nullopt;
  return Diagnosis{"masked data leaks", 0.7, "there is data where the formula has a filler"};
}

/// Finite data behind the mask: does it matter, and to what?
Opinion finite_behind_mask(const Suspect& suspect, const std::optional<Case>& c) {
  const auto zeros = suspect.read(*c);
  const auto numbers = suspect.read(filled_behind_mask(suspect.signature(), *c, 0.75));
  if (!zeros || !numbers || (zeros->right() && numbers->right())) return std::nullopt;
  if (!zeros->right() && right_with_sentinel(suspect, *c)) {
    return Diagnosis{"sentinel compared", 0.95,
                     "masked positions count unless they hold minus infinity"};
  }
  const std::set<OutputKind> moved = different_outputs(*zeros, *numbers);
  if (moved.contains(OutputKind::loss) || moved.contains(OutputKind::value)) {
    return Diagnosis{"masked data leaks", 0.95, "other numbers behind the mask change the result"};
  }
  if (!moves_masked_gradient(*zeros) && !moves_masked_gradient(*numbers)) return std::nullopt;
  if (numbers->forward_right()) {
    return Diagnosis{"gradient at a masked position", 0.95, "it is there with plain numbers, too"};
  }
  return Diagnosis{"masked data leaks", 0.9, "masked positions add to the loss, whatever is there"};
}

}  // namespace

Opinion probe_masked_terms(Suspect& suspect) {
  auto c = suspect.plain_case();
  if (!c) return data_for_filler(suspect);
  if (auto opinion = taken_for_mask(suspect, *c)) return opinion;
  if (auto opinion = finite_behind_mask(suspect, c)) return opinion;
  c->spec = with_all_terms(suspect.signature(), c->spec);
  return finite_behind_mask(suspect, c);
}

/// Data behind the mask that is not finite, or from which nothing finite comes: does the forward
/// show it? What is not finite elsewhere is asked as well: a mask that is multiplied is what shows
/// on every batch.
Opinion probe_behind_mask(Suspect& suspect) {
  const auto c = suspect.plain_case();
  if (!c) return std::nullopt;
  const bool seen_there = suspect.violation().cause == "non-finite value behind a mask";
  if (!seen_there && !is_finite(suspect.read(c))) return std::nullopt;
  std::vector<double> fillers = {HUGE_VAL, -HUGE_VAL, std::nan("")};
  // In too narrow a format large numbers overflow, masked or not.
  if (seen_there) fillers.insert(fillers.end(), {kLargestOrdinary, -kLargestOrdinary});
  // What was seen in a value needs no second case.
  bool forward = seen_there && !std::isfinite(suspect.violation().actual) &&
                 !suspect.violation().place.in_gradient(),
       backward = false;
  for (const double filler : fillers) {
    const auto reading = suspect.read(filled_behind_mask(suspect.signature(), *c, filler));
    if (!reading) continue;
    forward |= !reading->forward_finite();
    backward |= !reading->finite();
  }
  if (forward) {
    return Diagnosis{"non-finite value behind a mask", 0.95,
                     "what is made of data behind the mask is no number, and reaches the loss"};
  }
  if (!backward) return std::nullopt;
  return Diagnosis{"value repaired, gradient not", 0.95,
                   "whatever stands behind the mask the loss is finite, and the gradient is not"};
}

/// Batches and sequences of which nothing counts, with zeros behind the mask.
Opinion probe_empty(Suspect& suspect) {
  const Case& given = suspect.given();
  if (suspect.implementation().contract.empty != Empty::zero ||
      !has_empty_sequence(valid_positions(suspect.signature(), given),
                          given.shape[Axis::sequences])) {
    return std::nullopt;
  }
  const LossSignature& signature = suspect.signature();
  const auto c = suspect.plain_case();
  const auto plain = suspect.read(c);
  if (!plain || !plain->finite()) return std::nullopt;
  const auto not_finite = [&](const std::optional<Case>& empty) {
    const auto reading = suspect.read(empty);
    return reading && !reading->finite();
  };
  std::optional<Case> row, batch;
  if (allows_empty_rows(signature, c->spec)) row = suspect.plain_case({.empty_row = true});
  if (auto all = kAllMasked.apply(signature, *c, *c)) batch = std::move(all->c);
  if (batch) batch = zeroed_behind_mask(plain->study(), *batch).value_or(*batch);
  if (!not_finite(row) && !not_finite(batch)) return std::nullopt;
  return Diagnosis{"empty divisor", 0.95, "where nothing counts, zeros give no number"};
}

/// Where an empty sequence was seen to count: the batch without that sequence.
Opinion probe_emptied_row(Suspect& suspect) {
  if (suspect.violation().cause != "empty row counted") return std::nullopt;
  const Case& given = suspect.given();
  const std::int64_t emptied =
      first_live_sequence(valid_positions(suspect.signature(), given), given.shape[Axis::tokens]);
  std::vector<std::int64_t> others;
  for (std::int64_t row = 0; row < given.shape[Axis::sequences]; ++row) {
    if (row != emptied) others.push_back(row);
  }
  if (!is_wrong(suspect.read(batch_of(suspect.signature(), given, others)))) return std::nullopt;
  return Diagnosis{"disagrees with the formula", 0.5,
                   "as wrong where the sequence is taken away, which was emptied"};
}

}  // namespace lossgate::properties
