// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/case_facts.h"
#include "properties/spoilt_messages.h"
#include "properties/transforms.h"
#include "reference/reference.h"

namespace lossgate::properties {
namespace {

using Index = std::int64_t;

template <class T>
const T& any_of(const std::vector<T>& items, std::uint64_t pick) {
  return items[static_cast<std::size_t>(pick % items.size())];
}

/// The positions that count.
std::vector<Index> live_positions(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  std::vector<Index> positions;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) positions.push_back(static_cast<Index>(i));
  }
  return positions;
}

/// Of how many parts the field consists that count or do not: positions, sequences, or one.
Index parts_of(const Field& field, const Case& c) {
  const Index sequences = c.shape[Axis::sequences];
  return is_positional(field)   ? sequences * c.shape.positions()
         : has_rows(field.axes) ? sequences
                                : 1;
}

/// An entry that counts where the position does: one of the position's own, of its sequence's where
/// the field has no tokens, of all where every sequence shares them.
Index entry_at(const Field& field, const Tensor& tensor, const Case& c, Index position,
               std::uint64_t pick) {
  const Index parts = parts_of(field, c);
  const Index row = position / c.shape.positions();
  const Index part = parts == 1 ? 0 : is_positional(field) ? position : row;
  const Index each = tensor.size() / parts;
  return part * each +
         static_cast<Index>(pick % static_cast<std::uint64_t>(std::max<Index>(each, 1)));
}

/// Poisons one entry of one field that counts: any field, any position, as the case's own bits
/// decide; with `further`, so many fields and positions behind those, where there are as many
/// fields. Where a sequence has one value of the field, that is all its entries, and where a
/// position has a row of them that is often the row, as a model that broke gives it.
std::optional<Transformed> poisoned(const LossSignature& signature, const Case& whole,
                                    std::size_t further) {
  std::vector<const Field*> fields;
  for (const Field& field : signature.fields) {
    const Tensor& tensor = whole.batch.at(field.name);
    if (!field.absent && is_float(tensor.dtype) && tensor.size() > 0) fields.push_back(&field);
  }
  const std::vector<Index> positions = live_positions(signature, whole);
  if (fields.size() <= further || positions.empty()) return std::nullopt;
  const std::uint64_t pick = fingerprint_of(whole);
  Field field = *any_of(fields, pick % fields.size() + further);
  field.infinity = infinity_of(field, whole.spec);
  const Index position = any_of(positions, (pick >> 8) + further);
  Transformed result{.c = whole};
  Tensor& tensor = result.c.batch.at(field.name);
  const Index at = entry_at(field, tensor, whole, position, pick >> 24);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool infinite = field.infinity != Infinity::legal && (pick >> 40) % 3 == 0;
  const double poison = !infinite               ? std::numeric_limits<double>::quiet_NaN()
                        : (pick >> 44) % 2 == 0 ? kInfinity
                                                : -kInfinity;
  const bool row = is_positional(field) && (pick >> 48) % 2 == 0;
  const Index parts = field.one_per_sequence ? whole.shape[Axis::sequences]
                      : row                  ? parts_of(field, whole)
                                             : tensor.size();
  const Index run = tensor.size() / parts;
  for (Index i = at / run * run; i < (at / run + 1) * run; ++i) tensor.set(i, poison);
  return result;
}

std::optional<Transformed> nan_at_valid(const LossSignature& signature, const Case& whole,
                                        const Case&) {
  return poisoned(signature, whole, 0);
}

std::optional<Transformed> nan_in_another_field(const LossSignature& signature, const Case& whole,
                                                const Case&) {
  return poisoned(signature, whole, 1);
}

std::optional<Transformed> nan_in_a_third_field(const LossSignature& signature, const Case& whole,
                                                const Case&) {
  return poisoned(signature, whole, 2);
}

/// All that is differentiated at one position that counts, where that is more than one field: a
/// model that broke gives none of it.
std::optional<Transformed> nan_of_model(const LossSignature& signature, const Case& whole,
                                        const Case&) {
  std::vector<const Field*> given;
  for (const Field& field : signature.fields) {
    const bool differentiable = !field.absent && field.role == Role::differentiable;
    if (differentiable && has_rows(field.axes)) given.push_back(&field);
  }
  const std::vector<Index> positions = live_positions(signature, whole);
  if (given.size() < 2 || positions.empty()) return std::nullopt;
  const Index position = any_of(positions, fingerprint_of(whole) >> 16);
  Transformed result{.c = whole};
  for (const Field* field : given) {
    Tensor& tensor = result.c.batch.at(field->name);
    const Index each = tensor.size() / parts_of(*field, whole);
    const Index first = entry_at(*field, tensor, whole, position, 0);
    for (Index i = first; i < first + each; ++i) tensor.set(i, std::nan(""));
  }
  return result;
}

/// Makes the case invalid in one way; false where it does not apply. `pick` decides what is free to
/// choose.
using Spoil = bool (*)(const LossSignature&, Case&, std::uint64_t pick);

bool spoil_mask(const LossSignature& signature, Case& c, std::uint64_t pick) {
  if (signature.mask.empty() || c.batch.at(signature.mask).size() == 0) return false;
  Tensor& mask = c.batch.at(signature.mask);
  if (mask.dtype == Dtype::boolean) return false;
  mask.set(static_cast<Index>(pick % static_cast<std::uint64_t>(mask.size())), 2.0);
  return true;
}

/// Whether the case has the option by which the reduction divides, if it does so by one.
bool has_divisor(const LossSpec& spec, Reduction reduction) {
  const std::string_view divisor = divisor_option(reduction);
  return divisor.empty() || spec.find(divisor) != nullptr;
}

/// One that the loss has not got, whatever its callers leave of those that it has; `none`, which
/// many functions take, only where it has all others.
bool spoil_reduction(const LossSignature& signature, Case& c, std::uint64_t /*pick*/) {
  if (signature.reductions.empty()) return false;
  const LossSignature* whole = reference::find_signature(signature.id);
  const auto lacks = [&](const LossSignature& s, Reduction reduction) {
    return std::ranges::find(s.reductions, reduction) == s.reductions.end();
  };
  c.spec.reduction = Reduction::none;
  for (const Reduction reduction : kAllReductions) {
    if (!has_divisor(c.spec, reduction)) continue;
    const bool unknown = lacks(signature, reduction) && (!whole || lacks(*whole, reduction));
    if (unknown) c.spec.reduction = reduction;
  }
  return true;
}

/// A label beyond the vocabulary, before it, or one that is in it once its high bits are lost.
bool spoil_label(const LossSignature& signature, Case& c, std::uint64_t pick) {
  std::vector<Index> positions = live_positions(signature, c);
  if (positions.empty()) return false;
  std::vector<const Field*> labelled;
  for (const Field& field : signature.fields) {
    if (field.quantity == Quantity::label && is_positional(field)) labelled.push_back(&field);
  }
  if (labelled.empty()) return false;
  const Field& field = *any_of(labelled, pick >> 4);
  Tensor& labels = c.batch.at(field.name);
  if (labels.size() == 0) return false;
  std::vector<double> wrong = {static_cast<double>(c.shape[Axis::vocab]), -1.0};
  if (labels.dtype == Dtype::i64) wrong.push_back(0x1p32);
  for (Index& at : positions) at = entry_at(field, labels, c, at, pick >> 24);
  labels.set(any_of(positions, pick >> 8), any_of(wrong, pick));
  return true;
}

bool spoil_extent(const LossSignature& signature, Case& c, std::uint64_t /*pick*/) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (field.role == Role::differentiable || !is_positional(field) || tensor.extents[1] < 2) {
      continue;
    }
    --tensor.extents[1];
    tensor.bytes.resize(static_cast<std::size_t>(element_count(tensor.extents)) *
                        size_of(tensor.dtype));
    return true;
  }
  return false;
}

/// A numeric option below or above its range, or no number; an integer that is none. Where a range
/// has one value, or is another option's, a subject is not told; a choice has no range.
bool spoil_option(const LossSignature& signature, Case& c, std::uint64_t pick) {
  std::vector<const Option*> numeric;
  for (const Option& option : signature.options) {
    if (option.low < option.high && option.follows.empty()) numeric.push_back(&option);
  }
  if (numeric.empty()) return false;
  const Option& option = *any_of(numeric, pick >> 8);
  std::vector<double> wrong = {option.low - 1.0, std::nextafter(option.low, -HUGE_VAL),
                               std::nextafter(option.high, HUGE_VAL),
                               std::numeric_limits<double>::quiet_NaN()};
  if (option.kind != Option::Kind::real) wrong.push_back(option.low + 0.5);
  c.spec.set(option.name, any_of(wrong, pick));
  return true;
}

template <Spoil spoil>
std::optional<Transformed> spoilt(const LossSignature& signature, const Case& whole, const Case&) {
  Transformed result{.c = whole};
  if (!spoil(signature, result.c, fingerprint_of(whole))) return std::nullopt;
  return result;
}

constexpr Transform kInvalidWays[] = {
    {"invalid mask", spoilt<spoil_mask>},
    {"invalid reduction", spoilt<spoil_reduction>},
    {"invalid label", spoilt<spoil_label>},
    {"invalid extent", spoilt<spoil_extent>},
    {"invalid option", spoilt<spoil_option>},
    {"message without an array", spoilt<drop_array>},
    {"message without a completion", spoilt<drop_completion>},
    {"message with a NaN", spoilt<put_nan>},
    {"message with lists that differ", spoilt<shorten_list>},
    {"message with a text cut off", spoilt<cut_text>},
};

}  // namespace

const Transform kNanAtValid{"nan_at_valid", nan_at_valid};
const Transform kNanInAnotherField{"nan_in_another_field", nan_in_another_field};
const Transform kNanInAThirdField{"nan_in_a_third_field", nan_in_a_third_field};
const Transform kNanOfModel{"nan_of_model", nan_of_model};
const std::span<const Transform> kInvalid = kInvalidWays;

}  // namespace lossgate::properties
