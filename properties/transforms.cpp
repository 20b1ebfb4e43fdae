// SPDX-License-Identifier: Apache-2.0
#include "properties/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "properties/case_facts.h"
#include "reference/problem.h"
#include "reference/spec/even_parts.h"
#include "reference/spec/masked.h"

namespace lossgate::properties {
namespace {

using Index = std::int64_t;

/// Rewrites the data of the positional fields that `wanted` selects at masked positions. The fields
/// that say what is masked stay.
template <class Wanted, class Value>
std::optional<Transformed> rewrite_masked(const LossSignature& signature, const Case& whole,
                                          Wanted&& wanted, Value&& value) {
  if (!has_positions(signature)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, whole);
  if (std::ranges::find(valid, false) == valid.end()) return std::nullopt;
  Transformed result{.c = whole};
  bool any = false;
  for (const Field& field : signature.fields) {
    if (!is_positional(field) || field.name == signature.mask ||
        field.name == signature.ignore_label || !wanted(field)) {
      continue;
    }
    any = true;
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
  if (!any) return std::nullopt;
  return result;
}

std::optional<Transformed> repeated(const LossSignature&, const Case& whole, const Case&) {
  return Transformed{.c = whole};
}

std::optional<Transformed> masked_finite(const LossSignature& signature, const Case& whole,
                                         const Case&) {
  static constexpr std::array kValues = {1e4, -1e4, 0.0, 1.0, -3.5, 700.0, -0.0};
  const auto free = [](const Field& field) { return field.masked != Masked::zero; };
  return rewrite_masked(signature, whole, free, [](const Field& field, Dtype dtype, Index at) {
    if (!is_float(dtype)) return field.quantity == Quantity::label ? 0.0 : 1.0;
    const double value = kValues[static_cast<std::size_t>(at) % kValues.size()];
    return kept(field.masked, field.quantity, value);
  });
}

std::optional<Transformed> masked_non_finite(const LossSignature& signature, const Case& whole,
                                             const Case&) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr std::array kValues = {-kInf, kInf, std::numeric_limits<double>::quiet_NaN()};
  const std::size_t phase = fingerprint_of(whole) % kValues.size();
  const auto promised = [](const Field& field) {
    return field.masked == Masked::anything ||
           (field.masked == Masked::minus_infinity && field.quantity != Quantity::label);
  };
  return rewrite_masked(signature, whole, promised,
                        [phase](const Field& field, Dtype dtype, Index at) {
                          if (field.masked == Masked::minus_infinity) return -kInf;
                          if (dtype == Dtype::u8 || dtype == Dtype::boolean)
                            return at % 2 == 0 ? 0.0 : 1.0;
                          if (!is_float(dtype)) return at % 2 == 0 ? -1.0 : 120.0;
                          return kValues[(static_cast<std::size_t>(at) + phase) % kValues.size()];
                        });
}

/// Copies a field's rows to where the transform has them: row `s` to `row_of[s]` and token t to
/// t + offset. New entries have the value of `fill`.
void move_rows(const Field& field, const Case& base, Transformed& moved, double fill) {
  if (!has_rows(field.axes)) return;
  const Tensor& from = base.batch.at(field.name);
  Tensor& to = moved.c.batch.at(field.name);
  to = Tensor::zeros(from.dtype, moved.c.shape.of(field.axes));
  for (Index i = 0; i < to.size(); ++i) to.set(i, fill);
  const OutputInfo info{
      .name = "", .field = "", .axes = field.axes, .extents = base.shape.of(field.axes)};
  for (Index i = 0; i < from.size(); ++i) {
    std::memcpy(to.element(moved.index_of(info, to.extents, i)), from.element(i),
                size_of(from.dtype));
  }
}

std::optional<Transformed> padded(const LossSignature& signature, const Case& whole, const Case&) {
  if (!signature.tokens_paddable || !has_positions(signature)) return std::nullopt;
  const auto sequences = static_cast<std::size_t>(whole.shape[Axis::sequences]);
  const Index rows = allows_empty_rows(signature, whole.spec) ? reference::kPaddingSequences : 0;
  Transformed result{.c = whole,
                     .row_of = std::vector<Index>(sequences),
                     .token_offset = signature.prefix_mask ? 0 : 1};
  std::iota(result.row_of.begin(), result.row_of.end(), rows);  // the masked row comes first
  result.c.shape[Axis::sequences] += rows;
  result.c.shape[Axis::tokens] += reference::kPaddingTokens;
  for (const auto& [axis, extent] : signature.longest) {
    if (result.c.shape[axis] > extent) return std::nullopt;
  }
  for (const Field& field : signature.fields) {
    const bool marks = field.name == signature.ignore_label;
    move_rows(field, whole, result, marks ? static_cast<double>(kIgnoreLabel) : 0.0);
  }
  return result;
}

/// How many sequences beside each other may change places: the members of one group where groups
/// are told by their place, else all.
Index members_that_may_change(const LossSignature& signature, const Case& whole) {
  const Index rows = whole.shape[Axis::sequences];
  for (const Field& field : signature.fields) {
    if (!field.even_groups) continue;
    const Tensor& group = whole.batch.at(field.name);
    return std::max<Index>(1, rows / (1 + group.integer_at(rows - 1)));
  }
  return rows;
}

std::optional<Transformed> rows_permuted(const LossSignature& signature, const Case& whole,
                                         const Case&) {
  if (!signature.rows_permutable || whole.shape[Axis::sequences] < 2) return std::nullopt;
  Transformed result{.c = whole};
  const Index rows = whole.shape[Axis::sequences],
              block = members_that_may_change(signature, whole);
  for (Index s = 0; s < rows; ++s) {
    const Index first = s - s % block;
    result.row_of.push_back(first + std::min(block, rows - first) - 1 - s % block);
  }
  for (const Field& field : signature.fields) {
    move_rows(field, whole, result, 0.0);
  }
  return result;
}

std::optional<Transformed> split_as_given(const LossSignature& signature, const Case&,
                                          const Case& split) {
  if (!signature.splittable || split.split.whole()) return std::nullopt;
  if (!has_even_parts(signature, split)) return std::nullopt;
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
  if (!has_positions(signature) || !allows_empty_rows(signature, whole.spec)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, whole);
  const Index tokens = whole.shape[Axis::tokens];
  const Index row = first_live_sequence(valid, tokens);
  if (row < 0) return std::nullopt;
  if (std::find(valid.begin() + (row + 1) * tokens, valid.end(), true) == valid.end()) {
    return std::nullopt;  // no other row is live
  }
  Transformed result{.c = whole};
  for (Index t = 0; t < tokens; ++t) mask_position(signature, result.c, row * tokens + t);
  return result;
}

/// The first position that counts alone, where there are more.
std::optional<Transformed> one_left(const LossSignature& signature, const Case& whole,
                                    const Case&) {
  if (!has_positions(signature) || !allows_empty_rows(signature, whole.spec)) return std::nullopt;
  const std::vector<bool> valid = valid_positions(signature, whole);
  if (std::ranges::count(valid, true) < 2) return std::nullopt;
  Transformed result{.c = whole};
  const auto first = std::ranges::find(valid, true) - valid.begin();
  for (Index position = first + 1; position < std::ssize(valid); ++position) {
    if (valid[static_cast<std::size_t>(position)]) mask_position(signature, result.c, position);
  }
  return result;
}

/// Moves every differentiable entry at a valid position by a hundredth of its scale, up or down as
/// its index decides, a log-prob to no more than 0.
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
      const double moved = value + towards * 0.01 * std::min(1.0, 0.1 + std::fabs(value));
      const bool probability = field.quantity == Quantity::log_prob && value <= 0.0;
      tensor.set(i, probability ? std::min(moved, 0.0) : moved);
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

Case batch_of(const LossSignature& signature, const Case& whole,
              const std::vector<std::int64_t>& rows) {
  Case c = whole;
  c.split = {};
  c.shape[Axis::sequences] = static_cast<std::int64_t>(rows.size());
  for (const Field& field : signature.fields) {
    if (!has_rows(field.axes)) continue;
    const Tensor& from = whole.batch.at(field.name);
    Tensor& to = c.batch.at(field.name);
    to = Tensor::zeros(from.dtype, c.shape.of(field.axes));
    const auto sequences = static_cast<std::size_t>(whole.shape[Axis::sequences]);
    const std::size_t each = from.bytes.size() / std::max<std::size_t>(sequences, 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(to.bytes.data() + i * each,
                  from.bytes.data() + static_cast<std::size_t>(rows[i]) * each, each);
    }
  }
  return c;
}

std::int64_t first_live_sequence(const std::vector<bool>& valid, std::int64_t tokens) {
  const auto first = std::ranges::find(valid, true);
  return first == valid.end() ? -1 : (first - valid.begin()) / tokens;
}

void mask_position(const LossSignature& signature, Case& c, std::int64_t position) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_positional(field) || !is_float(tensor.dtype) || field.name == signature.mask) continue;
    const Index each = entries_per_position(c, tensor);
    for (Index i = position * each; i < (position + 1) * each; ++i) {
      const double value = tensor.at(i);
      if (keeps_to(field.masked, field.quantity, value)) continue;
      tensor.set(i, kept(field.masked, field.quantity, value));
    }
  }
  if (!signature.mask.empty()) c.batch.at(signature.mask).set(position, 0.0);
  if (!signature.ignore_label.empty()) {
    c.batch.at(signature.ignore_label).set(position, static_cast<double>(kIgnoreLabel));
  }
}

const Transform kRepeated{"repeated", repeated};
const Transform kMaskedFinite{"masked_finite", masked_finite};
const Transform kMaskedNonFinite{"masked_non_finite", masked_non_finite};
const Transform kPadded{"padded", padded};
const Transform kRowsPermuted{"rows_permuted", rows_permuted};
const Transform kSplit{"split", split_as_given};
const Transform kAllMasked{"all_masked", all_masked};
const Transform kRowMasked{"row_masked", row_masked};
const Transform kOneLeft{"one_left", one_left};
const Transform kStepForward{"step_forward", step_forward};
const Transform kStepBackward{"step_backward", step_backward};

}  // namespace lossgate::properties
