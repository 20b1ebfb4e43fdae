// SPDX-License-Identifier: Apache-2.0
#include "properties/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace lossgate::properties {
namespace {

using Index = std::int64_t;

/// A number that depends on the case and on nothing else: choices made with it vary from case to
/// case and never from run to run (FNV-1a over the stored bits).
std::uint64_t fingerprint_of(const Case& c) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& [name, tensor] : c.batch.fields) {
    for (std::byte byte : tensor.bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
  return hash ^ (hash >> 29);
}

bool has_positions(const LossSignature& signature) {
  return !signature.mask.empty() || !signature.ignore_label.empty();
}

/// Entries per position of a positional field.
Index entries_per_position(const Case& c, const Tensor& tensor) {
  const Index positions = c.shape[Axis::sequences] * c.shape[Axis::tokens];
  return positions > 0 ? tensor.size() / positions : 0;
}

void mask_position(const LossSignature& signature, Case& c, Index position) {
  if (!signature.mask.empty()) c.batch.at(signature.mask).set(position, 0.0);
  if (!signature.ignore_label.empty()) {
    c.batch.at(signature.ignore_label).set(position, static_cast<double>(kIgnoreLabel));
  }
}

/// Rewrites the data of every positional field at masked positions. The fields that say what is
/// masked stay.
template <class Value>
std::optional<Transformed> rewrite_masked(const LossSignature& signature, const Case& whole,
                                          Value&& value) {
  if (!has_positions(signature)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, whole);
  if (std::ranges::find(valid, false) == valid.end()) return std::nullopt;
  Transformed result{.c = whole};
  for (const Field& field : signature.fields) {
    if (!is_positional(field) || field.name == signature.mask ||
        field.name == signature.ignore_label) {
      continue;
    }
    Tensor& tensor = result.c.batch.at(field.name);
    const Index each = entries_per_position(whole, tensor);
    for (std::size_t position = 0; position < valid.size(); ++position) {
      if (valid[position]) continue;
      for (Index k = 0; k < each; ++k) {
        const Index at = static_cast<Index>(position) * each + k;
        tensor.set(at, value(field, tensor.dtype, at));
      }
    }
  }
  return result;
}

std::optional<Transformed> repeated(const LossSignature&, const Case& whole, const Case&) {
  return Transformed{.c = whole};
}

std::optional<Transformed> masked_finite(const LossSignature& signature, const Case& whole,
                                         const Case&) {
  static constexpr std::array kValues = {1e4, -1e4, 0.0, 1.0, -3.5, 700.0, -0.0};
  return rewrite_masked(signature, whole, [](const Field& field, Dtype dtype, Index at) {
    if (!is_float(dtype)) return field.quantity == Quantity::label ? 0.0 : 1.0;
    return kValues[static_cast<std::size_t>(at) % kValues.size()];
  });
}

std::optional<Transformed> masked_non_finite(const LossSignature& signature, const Case& whole,
                                             const Case&) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr std::array kValues = {-kInf, kInf, std::numeric_limits<double>::quiet_NaN()};
  const std::size_t phase = fingerprint_of(whole) % kValues.size();
  return rewrite_masked(signature, whole, [phase](const Field&, Dtype dtype, Index at) {
    if (dtype == Dtype::u8 || dtype == Dtype::boolean) return at % 2 == 0 ? 0.0 : 1.0;
    if (!is_float(dtype)) return at % 2 == 0 ? -1.0 : 120.0;
    return kValues[(static_cast<std::size_t>(at) + phase) % kValues.size()];
  });
}

/// Copies a tensor into a larger one, row `s` to `row_of[s]` and token t to t + offset. New entries
/// keep the value that `fill` has.
Tensor spread(const Tensor& from, const Field& field, const Case& here, const Case& base,
              const Transformed& moved, double fill) {
  Tensor to = Tensor::zeros(from.dtype, here.shape.of(field.axes));
  if (fill != 0.0) {
    for (Index i = 0; i < to.size(); ++i) to.set(i, fill);
  }
  const OutputInfo info{
      .name = "", .field = "", .axes = field.axes, .extents = base.shape.of(field.axes)};
  for (Index i = 0; i < from.size(); ++i) {
    std::memcpy(to.element(moved.index_of(info, to.extents, i)), from.element(i),
                size_of(from.dtype));
  }
  return to;
}

bool has_axis(const Field& field, Axis axis) {
  return std::ranges::find(field.axes, axis) != field.axes.end();
}

std::optional<Transformed> padded(const LossSignature& signature, const Case& whole, const Case&) {
  if (!signature.tokens_paddable || !has_positions(signature)) return std::nullopt;
  Transformed result{.c = whole, .row_of = {}, .token_offset = 1};
  const Index sequences = whole.shape[Axis::sequences];
  result.row_of.resize(static_cast<std::size_t>(sequences));
  std::iota(result.row_of.begin(), result.row_of.end(), 1);  // the masked row comes first
  result.c.shape[Axis::sequences] = sequences + 1;
  result.c.shape[Axis::tokens] = whole.shape[Axis::tokens] + 3;
  for (auto& [name, tensor] : result.c.batch.fields) {
    const Field* field = signature.find_field(name);
    if (!field || !has_axis(*field, Axis::sequences)) continue;
    const double fill = name == signature.ignore_label ? static_cast<double>(kIgnoreLabel) : 0.0;
    tensor = spread(tensor, *field, result.c, whole, result, fill);
  }
  return result;
}

std::optional<Transformed> rows_permuted(const LossSignature& signature, const Case& whole,
                                         const Case&) {
  const Index sequences = whole.shape[Axis::sequences];
  if (!signature.rows_permutable || sequences < 2) return std::nullopt;
  Transformed result{.c = whole};
  result.row_of.resize(static_cast<std::size_t>(sequences));
  for (Index s = 0; s < sequences; ++s) {
    result.row_of[static_cast<std::size_t>(s)] = sequences - 1 - s;
  }
  for (auto& [name, tensor] : result.c.batch.fields) {
    const Field* field = signature.find_field(name);
    if (!field || !has_axis(*field, Axis::sequences)) continue;
    tensor = spread(tensor, *field, result.c, whole, result, 0.0);
  }
  return result;
}

std::optional<Transformed> split_as_given(const LossSignature& signature, const Case&,
                                          const Case& split) {
  if (!signature.splittable || split.split.whole()) return std::nullopt;
  return Transformed{.c = split};
}

std::optional<Transformed> all_masked(const LossSignature& signature, const Case& whole,
                                      const Case&) {
  if (!has_positions(signature)) return std::nullopt;
  Transformed result{.c = whole};
  const Index positions = whole.shape[Axis::sequences] * whole.shape[Axis::tokens];
  for (Index position = 0; position < positions; ++position) {
    mask_position(signature, result.c, position);
  }
  return result;
}

std::optional<Transformed> row_masked(const LossSignature& signature, const Case& whole,
                                      const Case&) {
  if (!has_positions(signature)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, whole);
  const Index tokens = whole.shape[Axis::tokens];
  const auto first = std::ranges::find(valid, true);
  if (first == valid.end()) return std::nullopt;
  const Index row = (first - valid.begin()) / tokens;
  if (std::find(valid.begin() + (row + 1) * tokens, valid.end(), true) == valid.end()) {
    return std::nullopt;  // no other row is live
  }
  Transformed result{.c = whole};
  for (Index t = 0; t < tokens; ++t) mask_position(signature, result.c, row * tokens + t);
  return result;
}

std::optional<Transformed> zero_advantage(const LossSignature& signature, const Case& whole,
                                          const Case&) {
  if (signature.advantage.empty()) return std::nullopt;
  Transformed result{.c = whole};
  Tensor& advantage = result.c.batch.at(signature.advantage);
  for (Index i = 0; i < advantage.size(); ++i) advantage.set(i, i % 2 == 0 ? 0.0 : -0.0);
  if (!signature.coefficient.empty()) result.c.spec.set(signature.coefficient, 0.0);
  return result;
}

/// Poisons one entry of one field at a valid position: any field, any position, as the case's own
/// bits decide.
std::optional<Transformed> nan_at_valid(const LossSignature& signature, const Case& whole,
                                        const Case&) {
  std::vector<const Field*> fields;
  for (const Field& field : signature.fields) {
    if (is_positional(field) && is_float(whole.batch.at(field.name).dtype)) {
      fields.push_back(&field);
    }
  }
  const std::vector<bool> valid = valid_positions(signature, whole);
  std::vector<Index> positions;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) positions.push_back(static_cast<Index>(i));
  }
  if (fields.empty() || positions.empty()) return std::nullopt;
  const std::uint64_t pick = fingerprint_of(whole);
  const Field& field = *fields[pick % fields.size()];
  const Index position = positions[(pick >> 8) % positions.size()];
  Transformed result{.c = whole};
  Tensor& tensor = result.c.batch.at(field.name);
  const Index each = entries_per_position(whole, tensor);
  const Index at =
      position * each +
      static_cast<Index>((pick >> 24) % static_cast<std::uint64_t>(std::max<Index>(each, 1)));
  const bool infinite = field.infinity != Infinity::legal && (pick >> 40) % 3 == 0;
  tensor.set(at, infinite ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN());
  return result;
}

/// Each candidate makes the case invalid in one way; false where it does not apply.
using Spoil = bool (*)(const LossSignature&, Case&);

bool spoil_mask(const LossSignature& signature, Case& c) {
  if (signature.mask.empty() || c.batch.at(signature.mask).size() == 0) return false;
  Tensor& mask = c.batch.at(signature.mask);
  if (mask.dtype == Dtype::boolean) return false;
  mask.set(mask.size() - 1, 2.0);
  return true;
}

bool spoil_reduction(const LossSignature& signature, Case& c) {
  for (Reduction reduction : kAllReductions) {
    if (std::ranges::find(signature.reductions, reduction) == signature.reductions.end()) {
      c.spec.reduction = reduction;
      return !signature.reductions.empty();
    }
  }
  return false;
}

bool spoil_label(const LossSignature& signature, Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const auto first = std::ranges::find(valid, true);
  if (first == valid.end()) return false;
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::label || field.axes.size() != 2) continue;
    c.batch.at(field.name).set(first - valid.begin(), static_cast<double>(c.shape[Axis::vocab]));
    return true;
  }
  return false;
}

bool spoil_extent(const LossSignature& signature, Case& c) {
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

bool spoil_option(const LossSignature& signature, Case& c) {
  for (const Option& option : signature.options) {
    if (option.kind == Option::Kind::choice || option.kind == Option::Kind::flag) continue;
    c.spec.set(option.name, option.low - 1.0);
    return true;
  }
  return false;
}

std::optional<Transformed> invalid(const LossSignature& signature, const Case& whole, const Case&) {
  static constexpr std::array<Spoil, 5> kSpoilers = {spoil_mask, spoil_reduction, spoil_label,
                                                     spoil_extent, spoil_option};
  const std::size_t first = fingerprint_of(whole) % kSpoilers.size();
  for (std::size_t i = 0; i < kSpoilers.size(); ++i) {
    Transformed result{.c = whole};
    if (kSpoilers[(first + i) % kSpoilers.size()](signature, result.c)) return result;
  }
  return std::nullopt;
}

std::optional<Transformed> on_policy(const LossSignature& signature, const Case& whole,
                                     const Case&) {
  if (signature.on_policy.empty()) return std::nullopt;
  Transformed result{.c = whole};
  for (const auto& [field, twin] : signature.on_policy) {
    result.c.batch.at(field).bytes = whole.batch.at(twin).bytes;
  }
  return result;
}

/// Moves every differentiable entry at a valid position by a hundredth of its scale, up or down as
/// its index decides.
std::optional<Transformed> step(const LossSignature& signature, const Case& whole, double sign) {
  Transformed result{.c = whole};
  const std::vector<bool> valid =
      has_positions(signature) ? valid_positions(signature, whole) : std::vector<bool>{};
  for (const Field& field : signature.fields) {
    if (field.role != Role::differentiable) continue;
    Tensor& tensor = result.c.batch.at(field.name);
    const Index each = is_positional(field) ? entries_per_position(whole, tensor) : 0;
    for (Index i = 0; i < tensor.size(); ++i) {
      if (each > 0 && !valid.empty() && !valid[static_cast<std::size_t>(i / each)]) continue;
      const double value = tensor.at(i);
      const double towards = i % 3 == 0 ? -sign : sign;
      tensor.set(i, value + towards * 0.01 * std::min(1.0, 0.1 + std::fabs(value)));
    }
  }
  return result;
}

std::optional<Transformed> step_forward(const LossSignature& signature, const Case& whole,
                                        const Case&) {
  return step(signature, whole, 1.0);
}

std::optional<Transformed> step_backward(const LossSignature& signature, const Case& whole,
                                         const Case&) {
  return step(signature, whole, -1.0);
}

}  // namespace

std::int64_t Transformed::index_of(const OutputInfo& base, const Extents& here,
                                   std::int64_t index) const {
  if (row_of.empty() && token_offset == 0) return index;
  std::int64_t result = 0, scale = 1;
  for (std::size_t axis = base.axes.size(); axis-- > 0;) {
    std::int64_t at = index % base.extents[axis];
    index /= base.extents[axis];
    if (base.axes[axis] == Axis::sequences) at = row_of[static_cast<std::size_t>(at)];
    if (base.axes[axis] == Axis::tokens) at += token_offset;
    result += at * scale;
    scale *= here[axis];
  }
  return result;
}

const Transform kRepeated{"repeated", repeated};
const Transform kMaskedFinite{"masked_finite", masked_finite};
const Transform kMaskedNonFinite{"masked_non_finite", masked_non_finite};
const Transform kPadded{"padded", padded};
const Transform kRowsPermuted{"rows_permuted", rows_permuted};
const Transform kSplit{"split", split_as_given};
const Transform kAllMasked{"all_masked", all_masked};
const Transform kRowMasked{"row_masked", row_masked};
const Transform kZeroAdvantage{"zero_advantage", zero_advantage};
const Transform kNanAtValid{"nan_at_valid", nan_at_valid};
const Transform kInvalid{"invalid", invalid};
const Transform kOnPolicy{"on_policy", on_policy};
const Transform kStepForward{"step_forward", step_forward};
const Transform kStepBackward{"step_backward", step_backward};

}  // namespace lossgate::properties
