// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "fuzz/case_seed.h"
#include "fuzz/domains/options.h"
#include "fuzz/domains/split.h"
#include "fuzz/draw_case.h"
#include "fuzz/hash.h"
#include "fuzz/long_mask.h"
#include "reference/spec/even_parts.h"
#include "reference/spec/largest.h"

namespace lossgate::fuzz {
namespace {

/// What is carried from one row into the next shows in the next alone; of padded ones one may be
/// empty.
std::int64_t least_rows(const Length& length) {
  if (is_padded(length)) return length.extents.first > kThousands ? 2 : 3;
  return length.form == LongForm::plain || length.form == LongForm::far ? 2 : 1;
}

/// A reduction, options, shape, dtypes and what is masked, over zeros.
Case draw_frame(const LossSignature& signature, const Length& length, Choices& choices) {
  Case frame;
  choices.enter("options");
  // With another share of the target, say, nothing may hang on the label: the defaults come first.
  frame.spec = standard_spec(signature);
  if (length.form == LongForm::other_options) frame.spec = draw_other_spec(signature, choices);
  if (length.form == LongForm::other_option) {
    frame.spec = draw_spec_of_one(signature, length.option, choices);
  }
  if (length.form == LongForm::hostile) frame.spec = draw_spec(signature, Temper::nasty, choices);
  if (length.reduction) frame.spec.reduction = *length.reduction;
  choices.enter("shape");
  frame.shape = length.form == LongForm::crossed
                    ? draw_crossed_shape(signature, length.extents, choices)
                    : draw_long_shape(signature, length.extents, choices, least_rows(length));
  choices.enter("mask");
  const std::vector<std::uint8_t> valid = draw_long_mask(signature, frame, length, choices);
  const auto count = static_cast<std::int64_t>(valid.size());
  for (const Field& field : signature.fields) {
    const Dtype dtype =
        field.dtypes.empty() ? dtype_beside(field, length.dtype) : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, frame.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size() && tensor.size() == count; ++i) {
      const bool counts = valid[static_cast<std::size_t>(i)] != 0;
      if (field.name == signature.mask) tensor.set(i, counts ? 1.0 : 0.0);
      if (field.name == signature.ignore_label && signature.mask.empty() && !counts) {
        tensor.set(i, static_cast<double>(kIgnoreLabel));
      }
    }
    frame.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return frame;
}

/// Zeros in a hidden state but at a few coordinates. They add nothing to a bound, and what is left
/// keeps logits apart by little.
void thin_hidden_states(const LossSignature& signature, Case& c, Choices& choices) {
  const std::int64_t width = c.shape[Axis::hidden];
  const std::vector<std::uint8_t> kept = draw_few(width, 16, choices);
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::hidden_state) continue;
    Tensor& hidden = c.batch.at(field.name);
    for (std::int64_t i = 0; i < hidden.size(); ++i) {
      hidden.set(i, kept[static_cast<std::size_t>(i % width)] != 0 ? hidden.at(i) / 8 : 0.0);
    }
  }
}

/// How far the logarithm of the sum of exponentials lies above the largest of the logits.
double log_sum_above(double largest, std::span<const double> logits) {
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return std::log(sum);
}

/// The likeliest token of each row changes places with the last, and becomes as likely as all
/// others together, so that a normaliser loses half where it stops early, and where it begins late.
void weigh_last_tokens(const Field& field, std::int64_t vocab, Tensor& logits) {
  if (field.quantity != Quantity::logit) return;
  for (std::int64_t begin = 0; begin < logits.size(); begin += vocab) {
    std::vector<double> row;
    for (std::int64_t i = begin; i < begin + vocab; ++i) row.push_back(logits.at(i));
    const auto largest = std::ranges::max_element(row);
    const double likeliest = *largest;
    std::iter_swap(largest, row.end() - 1);
    logits.set(begin + (largest - row.begin()), *largest);
    row.pop_back();
    logits.set(begin + vocab - 1, likeliest + log_sum_above(likeliest, row));
  }
}

/// The logits of the last hidden state, which counts.
std::vector<double> last_logits(const Tensor& hidden, const Tensor& weight) {
  const std::int64_t width = weight.extents.back(), from = hidden.size() - width;
  std::vector<double> logits(static_cast<std::size_t>(weight.size() / width));
  for (std::size_t token = 0; token < logits.size(); ++token) {
    for (std::int64_t i = 0; i < width; ++i) {
      logits[token] +=
          hidden.at(from + i) * weight.at(static_cast<std::int64_t>(token) * width + i);
    }
  }
  return logits;
}

/// So far that in f32 no exp of it is a number, or none but 0.
constexpr double kFar = 120.0;

/// Where an output layer makes the logits: the likeliest token of the last hidden state changes
/// places with the last, and becomes as likely as all others together, or lies far ahead of them.
void weigh_last_row(const Tensor& hidden, Tensor& weight, LongForm form) {
  const std::vector<double> logits = last_logits(hidden, weight);
  const auto likeliest = std::ranges::max_element(logits);
  if (*likeliest == 0.0) return;
  constexpr double kMost = 4096.0;  // or nearly no hidden state would need a weight beyond f16
  const double ahead = form == LongForm::far ? kFar : log_sum_above(*likeliest, logits);
  const double scale = std::clamp(1.0 + ahead / *likeliest, -kMost, kMost);
  const std::int64_t width = weight.extents.back(), last = weight.size() - width;
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t at = (likeliest - logits.begin()) * width + i;
    const double moved = weight.at(last + i);
    weight.set(last + i, scale * weight.at(at));
    if (at != last + i) weight.set(at, moved);
  }
}

/// Each output layer follows the hidden states that it takes.
void weigh_last_rows(const LossSignature& signature, Case& c, LongForm form) {
  const Tensor* hidden = nullptr;
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (field.quantity == Quantity::hidden_state) hidden = &tensor;
    const bool layer = hidden && contains(field.axes, Axis::vocab) && field.axes.size() == 2;
    if (layer && field.quantity == Quantity::weight) weigh_last_row(*hidden, tensor, form);
  }
}

/// Where a vocabulary is dealt to blocks or to ranks, one of them begins there or ends: of all that
/// are a power of two, or a half and less.
std::int64_t draw_boundary(std::int64_t vocab, Choices& choices) {
  const auto blocks =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(vocab - 1)));
  const std::int64_t boundaries[] = {blocks, blocks - 1, vocab / 2, vocab / 2 - 1};
  return choices.one_of(boundaries);
}

/// The first label of all is that which lies farthest; others lie where blocks meet.
void take_last_tokens(const LossSignature& signature, Case& c, LongForm form, Choices& choices) {
  weigh_last_rows(signature, c, form);
  for (const Field& field : signature.fields) {
    weigh_last_tokens(field, c.shape[Axis::vocab], c.batch.at(field.name));
    if (field.quantity != Quantity::label || contains(field.axes, Axis::support)) continue;
    Tensor& label = c.batch.at(field.name);
    const std::int64_t vocab = c.shape[Axis::vocab];
    for (std::int64_t i = 0; i < label.size(); ++i) {
      if (label.at(i) < 0.0) continue;
      label.set(i, static_cast<double>(i == 0 ? vocab - 1 : draw_boundary(vocab, choices)));
    }
  }
}

/// As a filter leaves a row: half of its tokens or all but the last ones are impossible, and with
/// them whole tiles of it. Every label is the last token.
void rule_out_first_tokens(const LossSignature& signature, Case& c, Choices& choices) {
  const std::int64_t vocab = c.shape[Axis::vocab];
  const std::int64_t left = choices.sometimes(0.5)
                                ? vocab / 2
                                : choices.integer(1, std::min<std::int64_t>(1024, vocab / 4));
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    for (std::int64_t i = 0; is_filtered(field) && i < tensor.size(); ++i) {
      if (i % vocab < vocab - left) tensor.set(i, -HUGE_VAL);
    }
    for (std::int64_t i = 0; field.quantity == Quantity::label && i < tensor.size(); ++i) {
      if (tensor.at(i) >= 0.0) tensor.set(i, static_cast<double>(vocab - 1));
    }
  }
}

/// Of every second row all logits move down, of the others the last one up: who takes the largest
/// from no row, or from the wrong part of it, has a logarithm of 0, or of infinity.
void move_rows_far(const LossSignature& signature, Case& c, Choices& choices) {
  const std::int64_t vocab = c.shape[Axis::vocab], first = choices.sometimes(0.5);
  for (const Field& field : signature.fields) {
    if (field.quantity != Quantity::logit) continue;
    Tensor& logits = c.batch.at(field.name);
    for (std::int64_t i = 0; i < logits.size(); ++i) {
      const bool down = (i / vocab + first) % 2 == 0, last = i % vocab == vocab - 1;
      if (down || last) logits.set(i, logits.at(i) + (down ? -kFar : kFar));
    }
  }
}

}  // namespace

bool hides(const Length& length) { return is_padded(length) || length.form == LongForm::thin; }

bool is_plain(const Length& length) {
  constexpr LongForm kOthers[] = {LongForm::hostile, LongForm::ruled_out, LongForm::far};
  return !hides(length) && std::ranges::find(kOthers, length.form) == std::end(kOthers);
}

Case draw_long_case(std::uint64_t root_seed, const LossSignature& signature, const Length& length) {
  const auto& [axis, first, last, every] = length.extents;
  const std::uint64_t of_extents = root_seed ^ hash_of(name(axis)) ^
                                   static_cast<std::uint64_t>(last) * kGolden ^
                                   static_cast<std::uint64_t>(length.form) * kGolden;
  Choices choices(case_seed(of_extents, signature.id, length.dtype, 0));
  const Case frame = draw_frame(signature, length, choices);
  const bool hostile = length.form == LongForm::hostile;
  Case c = hostile ? draw_like(signature, frame, Keep::frame, Profile::hostile, choices)
                   : draw_like(signature, frame, Keep::positions, Profile::benign, choices,
                               hides(length) ? std::optional(Profile::hostile) : std::nullopt);
  if (axis == Axis::vocab && !hostile) take_last_tokens(signature, c, length.form, choices);
  if (length.form == LongForm::far) move_rows_far(signature, c, choices);
  if (length.form == LongForm::ruled_out) rule_out_first_tokens(signature, c, choices);
  if (axis == Axis::hidden) thin_hidden_states(signature, c, choices);
  make_numbers_small(signature, c);
  if (c.split.parts.size() > 2) {  // a micro-batch of each sequence would be thousands of calls
    c.split = draw_split(SplitForm::halves, c.shape[Axis::sequences], choices);
    make_parts_even(signature, c);
  }
  return c;
}

}  // namespace lossgate::fuzz
