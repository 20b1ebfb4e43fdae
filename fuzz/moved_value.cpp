// SPDX-License-Identifier: Apache-2.0
#include "fuzz/moved_value.h"

#include <cmath>
#include <limits>
#include <vector>

#include "fuzz/edges.h"
#include "reference/spec/masked.h"

namespace lossgate::fuzz {
namespace {

enum class Step { ulps, edge, negative, twice, half, scaled, zero, extreme, bits };

constexpr Step kSteps[] = {Step::ulps,   Step::edge, Step::negative, Step::twice, Step::half,
                           Step::scaled, Step::zero, Step::extreme,  Step::bits};
constexpr Step kBlindSteps[] = {Step::bits, Step::negative, Step::twice, Step::half, Step::scaled};

/// As far as the format reaches: random bits keep nothing of a number, doubling takes long.
double scaled(Dtype dtype, double value, Choices& choices) {
  const int far = std::ilogb(max_finite(dtype));
  return std::ldexp(value, static_cast<int>(choices.integer(-far, far)));
}

double random_bits(Dtype dtype, Choices& choices) {
  std::byte bits[8];
  store_bits(dtype, static_cast<std::uint64_t>(choices.integer(INT64_MIN, INT64_MAX)), bits);
  return decode(dtype, bits);
}

double extreme(Dtype dtype, Choices& choices) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double numbers[] = {-kInfinity,
                            kInfinity,
                            std::nan(""),
                            -max_finite(dtype),
                            max_finite(dtype),
                            min_normal(dtype),
                            min_subnormal(dtype),
                            -0.0,
                            1.0,
                            -100.0};
  return choices.one_of(numbers);
}

/// The entry of another field of the same quantity, as far as there is one, at the same place.
double partner(const LossSignature& signature, const Field& field, const Case& c, std::int64_t i,
               Choices& choices) {
  std::vector<double> partners;
  for (const Field& other : signature.fields) {
    if (&other == &field || other.quantity != field.quantity || other.axes != field.axes) continue;
    const double value = c.batch.at(other.name).at(i);
    if (std::isfinite(value)) partners.push_back(value);
  }
  return partners.empty() ? 0.0 : choices.one_of(std::span<const double>(partners));
}

double beyond_edge(const LossSignature& signature, const Field& field, const Case& c,
                   std::int64_t i, Choices& choices) {
  const Dtype dtype = c.batch.at(field.name).dtype;
  const EdgeList edges = field.quantity == Quantity::value ? value_edges(c.spec, dtype)
                                                           : log_ratio_edges(c.spec, dtype);
  const double edge = choices.one_of(edges.all());
  const double from = partner(signature, field, c, i, choices);
  const double to = from + choices.either_sign(edge);
  return step_ulps(dtype, to, static_cast<int>(choices.integer(-1, 1)));
}

double moved(const LossSignature& signature, const Field& field, Profile profile, const Case& c,
             std::int64_t i, Choices& choices) {
  const Tensor& tensor = c.batch.at(field.name);
  const double value = tensor.at(i);
  switch (profile == Profile::benign ? choices.one_of(kBlindSteps) : choices.one_of(kSteps)) {
    case Step::ulps:
      return std::isfinite(value)
                 ? step_ulps(tensor.dtype, value, static_cast<int>(choices.integer(-2, 2)))
                 : value;
    case Step::edge:
      return beyond_edge(signature, field, c, i, choices);
    case Step::negative:
      return -value;
    case Step::twice:
      return value * 2.0;
    case Step::half:
      return value * 0.5;
    case Step::scaled:
      return scaled(tensor.dtype, value, choices);
    case Step::zero:
      return 0.0;
    case Step::extreme:
      return extreme(tensor.dtype, choices);
    case Step::bits:
      return random_bits(tensor.dtype, choices);
  }
  return value;
}

/// Whether another entry of the row is finite: some token is possible.
bool leaves_one_possible(const Field& field, const Tensor& tensor, std::int64_t i) {
  if (field.axes.size() <= 2) return true;  // the rest of the row is not told
  const std::int64_t row = tensor.extents.back(), begin = i - i % row;
  for (std::int64_t other = begin; other < begin + row; ++other) {
    if (other != i && std::isfinite(tensor.at(other))) return true;
  }
  return false;
}

/// Whether the number may stand at this place, which counts.
bool may_count(const Field& field, Infinity infinity, const Tensor& tensor, std::int64_t i,
               double value) {
  if (std::isnan(value)) return false;
  if (std::isinf(value)) {
    return value < 0.0 && infinity == Infinity::legal && leaves_one_possible(field, tensor, i);
  }
  const double before = tensor.at(i);
  if (field.quantity == Quantity::log_prob) {
    // The probabilities of a row sum to 1 at most: none may grow.
    const bool of_a_row = field.axes.size() > 2;
    return value <= (of_a_row ? before : 0.0);
  }
  const bool weighs = field.role == Role::weight && field.quantity == Quantity::weight;
  return !weighs || value >= 0.0;
}

void move_number(const LossSignature& signature, const Field& field, Profile profile, bool counts,
                 std::int64_t i, Case& c, Choices& choices) {
  const double value = moved(signature, field, profile, c, i, choices);
  Tensor& tensor = c.batch.at(field.name);
  const double stored = round_to(tensor.dtype, value);
  const bool allowed = counts ? may_count(field, infinity_of(field, c.spec), tensor, i, stored)
                              : keeps_to(field.masked, field.quantity, stored);
  if (allowed) tensor.set(i, stored);
}

}  // namespace

void move_value(const LossSignature& signature, const Field& field, Profile profile, Case& c,
                Choices& choices) {
  Tensor& tensor = c.batch.at(field.name);
  if (tensor.size() == 0 || field.absent) return;
  const std::int64_t i = choices.integer(0, tensor.size() - 1);
  bool counts = true;
  if (is_positional(field)) {
    const std::vector<bool> valid = valid_positions(signature, c);
    counts = valid[static_cast<std::size_t>(i / (tensor.size() / std::ssize(valid)))];
  }
  const std::int64_t row = tensor.extents.empty() ? 1 : tensor.extents.back();
  if (field.quantity == Quantity::label) {
    if (counts && c.shape[Axis::vocab] > 0) {
      tensor.set(i, static_cast<double>(choices.integer(0, c.shape[Axis::vocab] - 1)));
    }
  } else if (field.quantity == Quantity::mask) {
    const bool begins_list = field.axes.size() > 1 && i % row == 0;  // which counts always
    if (field.name != signature.mask && !begins_list) tensor.set(i, tensor.at(i) == 0.0);
  } else if (is_float(tensor.dtype)) {
    move_number(signature, field, profile, counts, i, c, choices);
  }
}

}  // namespace lossgate::fuzz
