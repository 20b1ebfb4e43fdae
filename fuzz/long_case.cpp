// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_case.h"

#include <algorithm>

#include "fuzz/case_seed.h"
#include "fuzz/domains/options.h"
#include "fuzz/domains/shape.h"
#include "fuzz/domains/split.h"
#include "fuzz/draw_case.h"
#include "fuzz/hash.h"

namespace lossgate::fuzz {
namespace {

/// A reduction, the options at their defaults, shape, dtypes and a mask, over zeros.
Case draw_frame(const LossSignature& signature, const Length& length, Choices& choices) {
  Case frame;
  choices.enter("options");
  // With another share of the target, say, nothing may hang on the label.
  frame.spec = standard_spec(signature);
  frame.spec.reduction = draw_spec(signature, Temper::plain, choices).reduction;
  choices.enter("shape");
  frame.shape = draw_long_shape(signature, length.axis, choices);
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? length.dtype : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, frame.shape.of(field.axes));
    for (std::int64_t i = 0; field.name == signature.mask && i < tensor.size(); ++i) {
      tensor.set(i, 1.0);
    }
    frame.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return frame;
}

/// The likeliest token of each row changes places with the last, so that a normaliser which stops
/// early loses what weighs most.
void weigh_last_tokens(const Field& field, std::int64_t vocab, Tensor& logits) {
  if (field.quantity != Quantity::logit) return;
  for (std::int64_t row = 0; row < logits.size(); row += vocab) {
    std::int64_t largest = row;
    for (std::int64_t i = row; i < row + vocab; ++i) {
      if (logits.at(i) > logits.at(largest)) largest = i;
    }
    const double likeliest = logits.at(largest);
    logits.set(largest, logits.at(row + vocab - 1));
    logits.set(row + vocab - 1, likeliest + 1.0);  // all of them may be equal
  }
}

/// The first label of all is that which lies farthest.
void take_last_tokens(const LossSignature& signature, Case& c) {
  for (const Field& field : signature.fields) {
    weigh_last_tokens(field, c.shape[Axis::vocab], c.batch.at(field.name));
    if (field.quantity != Quantity::label || contains(field.axes, Axis::support)) continue;
    c.batch.at(field.name).set(0, static_cast<double>(c.shape[Axis::vocab] - 1));
  }
}

}  // namespace

std::vector<Length> lengths_of(const LossSignature& signature, std::span<const Dtype> dtypes) {
  std::vector<Length> lengths;
  if (dtypes.empty()) return lengths;
  for (const Axis axis : long_axes(signature)) {
    lengths.push_back({axis, dtypes[lengths.size() % dtypes.size()]});
  }
  return lengths;
}

Case draw_long_case(std::uint64_t root_seed, const LossSignature& signature, const Length& length) {
  const std::uint64_t of_axis = root_seed ^ hash_of(name(length.axis));
  Choices choices(case_seed(of_axis, signature.id, length.dtype, 0));
  const Case frame = draw_frame(signature, length, choices);
  Case c = draw_like(signature, frame, Keep::positions, Profile::benign, choices);
  if (length.axis == Axis::vocab) take_last_tokens(signature, c);
  if (c.split.parts.size() > 2) {  // a micro-batch of each sequence would be thousands of calls
    c.split = draw_split(SplitForm::halves, c.shape[Axis::sequences], choices);
  }
  return c;
}

std::optional<Axis> long_axis_of(const LossSignature& signature, const Shape& shape) {
  for (const Axis axis : long_axes(signature)) {
    if (shape[axis] == long_extent(signature, axis)) return axis;
  }
  return std::nullopt;
}

}  // namespace lossgate::fuzz
