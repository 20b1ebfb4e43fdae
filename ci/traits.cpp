// SPDX-License-Identifier: Apache-2.0
#include "ci/traits.h"

#include <algorithm>
#include <cmath>

#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

/// What stands at some positions of the floating-point fields.
struct Values {
  bool nan = false, infinity = false, minus_infinity = false, extreme = false, exponent = false,
       subnormal = false, minus_zero = false;

  void see(Dtype dtype, Quantity quantity, double value) {
    constexpr double kExpOverflows = 80.0;  // beyond it exp leaves f32, not far beyond
    const double size = std::fabs(value);
    const bool plain = is_ordinary(quantity, value) && size <= kExpOverflows;
    if (plain && size >= min_normal(dtype)) return;
    nan = nan || std::isnan(value);
    infinity = infinity || value == INFINITY;
    minus_infinity = minus_infinity || value == -INFINITY;
    const bool finite = std::isfinite(value);
    extreme = extreme || (finite && !is_ordinary(quantity, value));
    exponent = exponent || (finite && size > kExpOverflows);
    subnormal = subnormal || (value != 0.0 && size < min_normal(dtype));
    minus_zero = minus_zero || (value == 0.0 && std::signbit(value));
  }
};

struct Sight {
  Values masked, valid;
};

Sight look(const LossSignature& signature, const Case& c, const std::vector<bool>& positions) {
  Sight sight;
  for (const Field& field : signature.fields) {
    const Tensor* tensor = c.batch.find(field.name);
    if (!tensor || !is_float(tensor->dtype)) continue;
    const bool positional = is_positional(field) && !positions.empty();
    const std::int64_t row = positional ? tensor->size() / std::ssize(positions) : 1;
    for (std::int64_t i = 0; i < tensor->size(); ++i) {
      const bool counts = !positional || positions[static_cast<std::size_t>(i / row)];
      (counts ? sight.valid : sight.masked).see(tensor->dtype, field.quantity, tensor->at(i));
    }
  }
  return sight;
}

bool on_policy(const LossSignature& signature, const Case& c) {
  return std::ranges::any_of(signature.on_policy, [&](const auto& pair) {
    const Tensor* one = c.batch.find(pair.first);
    const Tensor* other = c.batch.find(pair.second);
    return one && other && one->size() > 0 && one->bytes == other->bytes;
  });
}

bool no_advantage(const LossSignature& signature, const Case& c) {
  const Tensor* advantage = c.batch.find(signature.advantage);
  if (!advantage || advantage->size() == 0) return false;
  for (std::int64_t i = 0; i < advantage->size(); ++i) {
    if (advantage->at(i) != 0.0) return false;
  }
  return true;
}

}  // namespace

std::vector<Trait> traits_of(const LossSignature& signature, const Case& c) {
  const std::vector<bool> positions = valid_positions(signature, c);
  const auto valid = std::ranges::count(positions, true);
  const auto all = std::ssize(positions);
  const Sight sight = look(signature, c, positions);
  const auto empty_part = [](const Split::Part& part) { return part.sequences.empty(); };
  const bool empty = c.shape[Axis::sequences] == 0 || c.shape[Axis::tokens] == 0;
  return {{"batch: empty", empty},
          {"batch: nothing valid", all > 0 && valid == 0},
          {"batch: one position", all == 1},
          {"batch: some masked", valid > 0 && valid < all},
          {"batch: a sequence without a valid token",
           valid > 0 && has_empty_sequence(positions, c.shape[Axis::sequences])},
          {"batch: on-policy", on_policy(signature, c)},
          {"batch: all advantages 0", no_advantage(signature, c)},
          {"batch: not contiguous", c.layout != Layout::contiguous},
          {"masked: NaN", sight.masked.nan},
          {"masked: inf", sight.masked.infinity},
          {"masked: -inf", sight.masked.minus_infinity},
          {"masked: beyond any healthy run", sight.masked.extreme},
          {"split: micro-batches", c.split.parts.size() > 1},
          {"split: several ranks", c.split.world > 1},
          {"split: an empty micro-batch", std::ranges::any_of(c.split.parts, empty_part)},
          {"upstream: 0", c.upstream == 0.0},
          {"upstream: other than 0 and 1", c.upstream != 0.0 && c.upstream != 1.0},
          {"valid: NaN", sight.valid.nan},
          {"valid: inf", sight.valid.infinity},
          {"valid: -inf", sight.valid.minus_infinity},
          {"valid: beyond any healthy run", sight.valid.extreme},
          {"valid: beyond 80, where exp ends", sight.valid.exponent},
          {"valid: subnormal", sight.valid.subnormal},
          {"valid: -0", sight.valid.minus_zero}};
}

}  // namespace lossgate::ci
