// SPDX-License-Identifier: Apache-2.0
#include "properties/plain_case.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "properties/case_facts.h"
#include "reference/spec/groups.h"
#include "reference/spec/kinds.h"
#include "reference/spec/largest.h"
#include "reference/spec/lists.h"
#include "reference/spec/padding.h"

namespace lossgate::properties {
namespace {

constexpr std::int64_t kSequences = 4, kTokens = 5;

/// Where each sequence begins and how long it is: no two counts of the batch are equal.
struct Span {
  std::int64_t first, length;
};
constexpr std::array<Span, kSequences> kRagged = {{{0, 5}, {3, 2}, {0, 4}, {1, 3}}};

/// Far more than fields have, in all their uses.
constexpr std::size_t kApart = 1000;

/// A number between 0 and 1 that follows from the two (splitmix64).
double share(std::size_t field, std::int64_t index) {
  std::uint64_t x = (static_cast<std::uint64_t>(field) << 32) + static_cast<std::uint64_t>(index);
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return std::ldexp(static_cast<double>((x ^ (x >> 31)) >> 11), -53);
}

Shape plain_shape(const LossSignature& signature, const Case& like, const Plain& plain) {
  Shape shape = like.shape;
  const auto choose = [&](Axis axis, std::int64_t extent) {
    const std::int64_t most = signature.longest_extent(axis).value_or(extent);
    if (shape[axis] < 0) return;
    shape[axis] = signature.pinned_extent(axis).value_or(std::min(extent, most));
  };
  choose(Axis::sequences, kSequences);
  choose(Axis::tokens, kTokens);
  choose(Axis::vocab, std::clamp<std::int64_t>(like.shape[Axis::vocab], 5, 12));
  choose(Axis::hidden, 3);
  choose(Axis::support, std::clamp<std::int64_t>(like.shape[Axis::support], 1, 3));
  for (const Axis axis : plain.few) choose(axis, plain.at_most);
  return shape;
}

Shape long_shape(const LossSignature& signature, const Case& like, Axis axis, std::int64_t extent) {
  Shape shape = like.shape;
  // A row of so many numbers may be wrong after the first.
  const std::int64_t most = signature.longest_extent(Axis::sequences).value_or(2);
  const std::int64_t rows = axis == Axis::tokens ? 1 : std::min<std::int64_t>(most, 2);
  for (Axis each : kAllAxes) {
    if (shape[each] < 0 || signature.pinned_extent(each)) continue;
    shape[each] = each == axis              ? extent
                  : each == Axis::sequences ? rows
                  : each == Axis::vocab     ? 2
                                            : 1;
  }
  return shape;
}

bool counts(const Shape& shape, const Plain& plain, std::int64_t position) {
  const std::int64_t tokens = shape[Axis::tokens];
  if (tokens < 1 || plain.length) return true;
  const std::int64_t row = position / tokens, token = position % tokens;
  if (plain.empty_row && row == shape[Axis::sequences] - 1) return false;
  if (!plain.padding || tokens < kTokens) return true;
  const Span& span = kRagged[static_cast<std::size_t>(row) % kRagged.size()];
  return token >= span.first && token < span.first + span.length;
}

/// The log-prob in few digits, four times the spread lower.
double in_few_digits(double log_prob, double spread) {
  constexpr double kDigits = 16.0, kLower = 4.0;
  return (std::round(kDigits * log_prob / spread) / kDigits - kLower) * spread;
}

double number(const Field& field, std::size_t ordinal, std::int64_t at, const Shape& shape,
              const Plain& plain) {
  ordinal += kApart * static_cast<std::size_t>(plain.turn);
  const double u = share(ordinal, at);
  const double sign = share(ordinal + 101, at) < 0.5 ? -1.0 : 1.0;
  const bool list = field.axes.size() > 2;
  switch (field.quantity) {
    case Quantity::log_prob: {
      const double own = list ? -(std::log(static_cast<double>(shape[field.axes.back()])) + 0.5 + u)
                              : -plain.spread * (u + 0.25);
      return plain.few_digits ? in_few_digits(own, plain.spread) : own;
    }
    case Quantity::logit:
      return plain.logit_spread * (2.0 * u - 1.0);
    case Quantity::value:
      return plain.spread * (1.5 * u - 0.75);
    case Quantity::weight:  // of a position it has no sign
      return field.role == Role::weight ? 0.25 + u : 2.0 * u - 1.0;
    case Quantity::hidden_state:
      return 2.0 * u - 1.0;
    default:
      return sign * (0.25 + u);
  }
}

double label(const Field& field, std::int64_t position, std::int64_t k, const Shape& shape,
             const Plain& plain) {
  const std::int64_t vocab = std::max<std::int64_t>(shape[Axis::vocab], 1);
  if (plain.length) return static_cast<double>(vocab - 1 - (position + k) % vocab);
  return static_cast<double>(((field.axes.size() > 2 ? position : 3 * position + 1) + k) % vocab);
}

}  // namespace

std::optional<Case> plain_case(const LossSignature& signature, const Case& like,
                               const Plain& plain) {
  Case c = like;
  c.shape = plain.length ? long_shape(signature, like, plain.length->first, plain.length->second)
                         : plain_shape(signature, like, plain);
  if (!has_room_for_lists(signature, c.shape)) c.shape[Axis::vocab] = c.shape[Axis::support];
  c.split = {};
  c.layout = Layout::contiguous;
  c.upstream = 1.0;
  const std::int64_t positions = c.shape[Axis::sequences] * c.shape[Axis::tokens];
  for (std::size_t ordinal = 0; ordinal < signature.fields.size(); ++ordinal) {
    const Field& field = signature.fields[ordinal];
    if (field.quantity == Quantity::payload) return std::nullopt;
    const Tensor& given = like.batch.at(field.name);
    const bool free = field.dtypes.empty();
    Tensor& tensor = c.batch.at(field.name);
    tensor = Tensor::zeros(free ? plain.dtype.value_or(given.dtype) : given.dtype,
                           c.shape.of(field.axes));
    if (field.absent) continue;
    const std::int64_t each =
        is_positional(field) ? tensor.size() / std::max<std::int64_t>(positions, 1) : 0;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const std::int64_t position = each > 0 ? i / each : -1;
      const bool valid = position < 0 || counts(c.shape, plain, position);
      if (field.name == signature.mask) {
        tensor.set(i, valid ? 1.0 : 0.0);
      } else if (field.quantity == Quantity::label) {
        const bool marks = field.name == signature.ignore_label && !valid;
        tensor.set(i, marks ? static_cast<double>(kIgnoreLabel)
                            : label(field, std::max<std::int64_t>(position, 0),
                                    each > 0 ? i % each : i, c.shape, plain));
      } else if (field.even_groups) {
        tensor.set(i, static_cast<double>(i / members_of_even_groups(tensor.size(), 2)));
      } else if (field.quantity == Quantity::group) {
        tensor.set(i, static_cast<double>(1 + (i + 1) / 2));
      } else if (field.quantity == Quantity::mask) {
        tensor.set(i, static_cast<double>(!tells_kinds(field) || i % 2 == 0));
      } else if (valid || !has_positions(signature)) {
        const std::int64_t row = field.one_per_sequence ? position / c.shape[Axis::tokens] : i;
        tensor.set(i, number(field, ordinal, row, c.shape, plain));
      }
    }
  }
  make_lists_distinct(signature, c);
  make_numbers_small(signature, c);
  move_valid_first(signature, c);
  return c;
}

std::optional<Case> with_other_numbers(const LossSignature& signature, const Case& like,
                                       const Plain& plain) {
  Case c = like;
  const std::int64_t positions = c.shape[Axis::sequences] * c.shape[Axis::tokens];
  for (std::size_t ordinal = 0; ordinal < signature.fields.size(); ++ordinal) {
    const Field& field = signature.fields[ordinal];
    if (field.quantity == Quantity::payload) return std::nullopt;
    Tensor& tensor = c.batch.at(field.name);
    const bool kept = field.name == signature.mask || field.quantity == Quantity::label ||
                      field.quantity == Quantity::group || !is_float(tensor.dtype);
    if (kept) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const bool alike = field.one_per_sequence && positions > 0 && is_positional(field);
      const std::int64_t at = alike ? i / c.shape[Axis::tokens] : i;
      if (tensor.at(i) != 0.0) tensor.set(i, number(field, ordinal, at, c.shape, plain));
    }
  }
  return c;
}

Case with_another_field(const LossSignature& signature, Case c, const Field& field) {
  Tensor& tensor = c.batch.at(field.name);
  if (const auto numbers = with_other_numbers(signature, c, {.turn = 1})) {
    tensor = numbers->batch.at(field.name);
  }
  const std::int64_t vocab = c.shape[Axis::vocab];
  if (field.quantity != Quantity::label || vocab < 1) return c;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t label = tensor.integer_at(i);
    if (label >= 0) tensor.set(i, static_cast<double>((label + 1) % vocab));
  }
  return c;
}

}  // namespace lossgate::properties
