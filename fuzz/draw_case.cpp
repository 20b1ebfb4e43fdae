// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_case.h"

#include <algorithm>

#include "fuzz/domains/advantage.h"
#include "fuzz/domains/group.h"
#include "fuzz/domains/hidden.h"
#include "fuzz/domains/labels.h"
#include "fuzz/domains/layout.h"
#include "fuzz/domains/log_ratio.h"
#include "fuzz/domains/logits.h"
#include "fuzz/domains/mask.h"
#include "fuzz/domains/options.h"
#include "fuzz/domains/payload.h"
#include "fuzz/domains/reward.h"
#include "fuzz/domains/sentinel.h"
#include "fuzz/domains/shape.h"
#include "fuzz/domains/split.h"
#include "fuzz/domains/support.h"
#include "fuzz/domains/upstream.h"
#include "fuzz/domains/value.h"
#include "fuzz/level_rows.h"
#include "fuzz/repeat_row.h"

namespace lossgate::fuzz {
namespace {

/// The case while it is drawn, axis by axis.
class Drawing {
 public:
  Drawing(const LossSignature& signature, Dtype dtype, Profile profile, Choices& choices)
      : signature_(signature), dtype_(dtype), choices_(choices), tempers_(profile, choices) {}

  Drawing(const LossSignature& signature, const Case& like, Keep keep, Profile profile,
          std::optional<Profile> behind_mask, Choices& choices)
      : Drawing(signature, float_dtype(signature, like), profile, choices) {
    if (behind_mask) behind_mask_ = Tempers(*behind_mask, choices);
    like_ = &like;
    keeps_positions_ = keep == Keep::positions;
  }

  Case draw() {
    case_.spec = like_ ? like_->spec : draw_spec(signature_, enter("options"), choices_);
    case_.shape = like_ ? like_->shape : draw_shape(signature_, enter("shape"), choices_);
    allocate();
    draw_valid();
    draw_fields();
    draw_label_holes();
    place_all_sentinels();
    level_rows(signature_, valid_, case_);
    choices_.enter("repeat");
    if (!like_) repeat_a_row(signature_, choices_, case_);
    draw_surroundings();
    return std::move(case_);
  }

 private:
  Temper enter(std::string_view axis) {
    choices_.enter(axis);
    return tempers_.next(choices_);
  }

  Tensor& tensor(std::size_t field) { return case_.batch.fields[field].second; }

  void allocate() {
    choices_.enter("dtypes");
    case_.batch.fields.reserve(signature_.fields.size());
    for (const Field& field : signature_.fields) {
      const Dtype dtype = field.dtypes.empty() ? dtype_beside(field, dtype_)
                          : like_              ? like_->batch.at(field.name).dtype
                          : choices_.sometimes(0.3)
                              ? choices_.one_of(std::span<const Dtype>(field.dtypes))
                              : field.dtypes.front();
      case_.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, case_.shape.of(field.axes)));
    }
  }

  std::int64_t sequences() const { return std::max<std::int64_t>(case_.shape[Axis::sequences], 1); }
  std::int64_t tokens() const { return std::max<std::int64_t>(case_.shape[Axis::tokens], 1); }

  /// Where every position is a token or, in a case without tokens, a sequence.
  bool has_positions(const Field& field) const {
    return is_positional(field) || (case_.shape[Axis::tokens] < 0 && has_rows(field.axes));
  }

  void draw_valid() {
    valid_.assign(static_cast<std::size_t>(sequences() * tokens()), 1);
    if (signature_.mask.empty() && signature_.ignore_label.empty()) return;
    if (keeps_positions_) return take_valid();
    const Temper temper = enter("mask");
    draw_mask(pick_mask_form(temper, choices_), sequences(), tokens(), choices_, valid_);
    if (!allows_empty_rows(signature_, case_.spec)) {
      const std::vector<std::uint8_t> all(valid_.size(), 1);
      revive_rows(valid_, all, tokens(), choices_);
    }
    Tensor* mask = signature_.mask.empty() ? nullptr : &case_.batch.at(signature_.mask);
    if (!mask || mask->size() != static_cast<std::int64_t>(valid_.size())) return;
    for (std::size_t i = 0; i < valid_.size(); ++i) {
      mask->set(static_cast<std::int64_t>(i), valid_[i]);
    }
  }

  void take_valid() {
    std::ranges::copy(valid_positions(signature_, *like_), valid_.begin());
    if (signature_.mask.empty()) return;
    case_.batch.at(signature_.mask) = like_->batch.at(signature_.mask);
  }

  /// What a scaled difference of 1 is.
  double unit_of_log_ratios() const {
    return signature_.scale.empty() ? 1.0 : 1.0 / case_.spec.number(signature_.scale);
  }

  /// The fields of one quantity on the same axes, those with a gradient first; of one dtype, where
  /// they have dtypes of their own.
  std::size_t collect(std::size_t leader, std::vector<bool>& drawn,
                      std::array<Column, kMostColumns>& columns) {
    const Field& like = signature_.fields[leader];
    std::size_t count = 0;
    for (bool differentiable : {true, false}) {
      for (std::size_t i = leader; i < signature_.fields.size() && count < kMostColumns; ++i) {
        const Field& field = signature_.fields[i];
        if (drawn[i] || field.absent || (field.role == Role::differentiable) != differentiable)
          continue;
        if (field.quantity != like.quantity || field.axes != like.axes) continue;
        const bool free = field.dtypes.empty() && like.dtypes.empty();
        if (!free && tensor(i).dtype != tensor(leader).dtype) continue;
        drawn[i] = true;
        columns[count++] = {&field, &tensor(i), false, valid_, &case_.spec};
      }
    }
    relate(signature_, Columns(columns.data(), count));
    return count;
  }

  /// Labels come after everything else, since they look at the logits.
  void draw_fields() {
    std::vector<bool> drawn(signature_.fields.size(), false);
    std::array<Column, kMostColumns> columns;
    for (bool labels : {false, true}) {
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        const Field& field = signature_.fields[i];
        if (drawn[i] || field.absent || field.name == signature_.mask) continue;
        if ((field.quantity == Quantity::label) != labels) continue;
        const std::size_t count = collect(i, drawn, columns);
        draw_quantity(field.quantity, Columns(columns.data(), count), enter(field.name));
      }
    }
  }

  void draw_quantity(Quantity quantity, Columns columns, Temper temper) {
    const auto each = [&](auto draw) {
      for (const Column& column : columns) draw(column, temper, choices_);
    };
    const std::vector<Axis>& axes = columns[0].field->axes;
    switch (quantity) {
      case Quantity::log_prob:
        if (contains(axes, Axis::support) || contains(axes, Axis::vocab)) {
          return draw_support(columns, temper, choices_);
        }
        return draw_log_probs(columns, log_ratio_edges(case_.spec, finest_dtype(columns)), temper,
                              choices_, unit_of_log_ratios());
      case Quantity::advantage:
        return each(draw_advantages);
      case Quantity::reward:
        return each(draw_rewards);
      case Quantity::logit:
        return draw_logits(columns, temper, choices_);
      case Quantity::hidden_state:
        return draw_hidden(columns, temper, choices_);
      case Quantity::weight:
        if (contains(axes, Axis::hidden) || contains(axes, Axis::vocab)) {
          return draw_hidden(columns, temper, choices_);
        }
        return each(draw_weights);
      case Quantity::value:
        return draw_values(columns, value_edges(case_.spec, finest_dtype(columns)), temper,
                           choices_);
      case Quantity::upstream:
        return each(draw_upstream_field);
      case Quantity::label:
        for (const Column& column : columns) {
          draw_labels(column, vocab(), logits_of(*column.field), temper, choices_);
        }
        return;
      case Quantity::mask:
        return each(draw_inner_mask);
      case Quantity::group:
        // What has no other field answers with the numbers.
        return draw_groups(columns, signature_.fields.size() > 1, temper, choices_);
      case Quantity::payload:
        return draw_payload(columns, case_.shape, temper, choices_);
    }
  }

  std::int64_t vocab() const {
    const std::int64_t extent = case_.shape[Axis::vocab];
    return extent > 0 ? extent : 32000;
  }

  /// The logits of the rows that the labels index, if there are any.
  const Tensor* logits_of(const Field& label) const {
    for (const Field& field : signature_.fields) {
      if (field.quantity == Quantity::logit && field.axes.size() == label.axes.size() + 1 &&
          std::equal(label.axes.begin(), label.axes.end(), field.axes.begin())) {
        return &case_.batch.at(field.name);
      }
    }
    return nullptr;
  }

  /// Positions that the label masks: all masked ones where there is no mask, else a few more.
  void draw_label_holes() {
    if (signature_.ignore_label.empty()) return;
    const bool no_mask = signature_.mask.empty();
    masked_by_mask_ = valid_;
    for (std::size_t i = 0; i < valid_.size(); ++i) {
      if (no_mask || case_.batch.at(signature_.mask).at(static_cast<std::int64_t>(i)) != 0.0) {
        masked_by_mask_[i] = 1;
      }
    }
    Tensor& label = case_.batch.at(signature_.ignore_label);
    if (label.size() != static_cast<std::int64_t>(valid_.size())) return;
    const Temper temper = enter("label holes");
    const bool holes =
        !no_mask && !keeps_positions_ && temper != Temper::plain && choices_.sometimes(0.5);
    const std::vector<std::uint8_t> before = valid_;
    for (std::uint8_t& position : valid_) {
      if (holes && choices_.sometimes(0.2)) position = 0;
    }
    if (!allows_empty_rows(signature_, case_.spec)) {
      revive_rows(valid_, before, tokens(), choices_);
    }
    for (std::size_t i = 0; i < valid_.size(); ++i) {
      const bool by_label = !valid_[i] && masked_by_mask_[i];
      if (by_label) label.set(static_cast<std::int64_t>(i), static_cast<double>(kIgnoreLabel));
    }
  }

  void place_all_sentinels() {
    choices_.enter("sentinel");
    const Temper temper = behind_mask_.value_or(tempers_).next(choices_);
    for (std::size_t i = 0; i < signature_.fields.size(); ++i) {
      const Field& field = signature_.fields[i];
      const Column column{&field, &tensor(i), false};
      if (!has_positions(field) || field.absent) continue;
      if (field.quantity == Quantity::label) {
        const bool ignores = field.name == signature_.ignore_label;
        place_label_sentinels(column, ignores ? masked_by_mask_ : valid_, vocab(), temper,
                              choices_);
      } else if (is_float(column.tensor->dtype) && field.quantity != Quantity::mask) {
        place_sentinels(column, valid_, temper, choices_);
      }
    }
  }

  void draw_surroundings() {
    if (signature_.splittable && case_.shape[Axis::sequences] > 0) {
      split_sequences(signature_, enter("split"), case_, choices_);
    }
    case_.layout = draw_layout(enter("layout"), choices_);
    const Dtype loss_dtype = dtype_ == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    case_.upstream = draw_upstream(enter("upstream"), loss_dtype, choices_);
  }

  const LossSignature& signature_;
  Dtype dtype_;
  Choices& choices_;
  Tempers tempers_;
  std::optional<Tempers> behind_mask_;  ///< those of it where they are others
  const Case* like_ = nullptr;          ///< gives spec, shape and dtypes
  bool keeps_positions_ = false;        ///< and what counts
  Case case_;
  std::vector<std::uint8_t> valid_;           ///< 1 where a position counts
  std::vector<std::uint8_t> masked_by_mask_;  ///< 0 where the mask field masks, whatever the label
};

}  // namespace

Case draw_case(const LossSignature& signature, Dtype dtype, Profile profile, Choices& choices) {
  return Drawing(signature, dtype, profile, choices).draw();
}

Case draw_like(const LossSignature& signature, const Case& like, Keep keep, Profile profile,
               Choices& choices, std::optional<Profile> behind_mask) {
  return Drawing(signature, like, keep, profile, behind_mask, choices).draw();
}

}  // namespace lossgate::fuzz
