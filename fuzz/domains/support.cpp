// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/support.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lossgate::fuzz {
namespace {

constexpr Share<SupportForm> kForms[] = {
    {SupportForm::spread, {6, 3, 1}},    {SupportForm::small, {1, 2, 1}},
    {SupportForm::tiny_tail, {0, 3, 2}}, {SupportForm::no_tail, {0, 1, 1}},
    {SupportForm::saturated, {0, 3, 1}}, {SupportForm::impossible, {0, 1, 1}},
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Slightly more than log 2: halves, quarters, ... of this many nats leave room for rounding, to
/// bf16 too.
constexpr double kHalf = 0.6953125;

/// A row of one column, seen as a ranking: place r holds the r-th most probable entry.
struct Row {
  Tensor& tensor;
  std::int64_t begin;
  std::int64_t count;
  std::int64_t turn;  ///< where the most probable entry stands

  void set(std::int64_t rank, double value) {
    const double least = -max_finite(tensor.dtype);
    tensor.set(begin + (rank + turn) % count, value > -kInfinity ? std::max(value, least) : value);
  }
};

void draw_row(SupportForm form, bool infinity_legal, Row row, Choices& choices) {
  const auto rank = [](std::int64_t r) { return static_cast<double>(r + 1) * kHalf; };
  const double sunk = form == SupportForm::small ? choices.real(5.0, 100.0) : 0.0;
  const int deepest = std::min(40, -std::ilogb(min_subnormal(row.tensor.dtype)));
  const int tail =
      form == SupportForm::tiny_tail ? static_cast<int>(choices.integer(1, deepest)) : 0;
  for (std::int64_t r = 0; r < row.count; ++r) {
    switch (form) {
      case SupportForm::spread:
      case SupportForm::small:
        row.set(r, -rank(r) - sunk - choices.log_uniform(0x1p-6, 4.0));
        break;
      case SupportForm::tiny_tail:
        // exp(-2^-k) leaves about 2^-k; the others share less than half of that.
        row.set(r, r == 0 ? -1.0 / static_cast<double>(std::int64_t{1} << tail)
                          : -(tail + 2) * kHalf - rank(r));
        break;
      case SupportForm::no_tail:
        // Beside an entry of probability 1 only -inf keeps the sum at 1.
        if (r == 0) row.set(r, infinity_legal || row.count == 1 ? 0.0 : -0x1p-20);
        if (r != 0) row.set(r, infinity_legal ? -kInfinity : -1e4);
        break;
      case SupportForm::saturated:
        // What log_softmax in f32 returns of a logit of 100 far above the others.
        row.set(r, r == 0 ? 0.0 : -choices.real(12.5, 14.0) - rank(r - 2));
        break;
      case SupportForm::impossible:
        row.set(r, r == 0           ? -kHalf - choices.log_uniform(0x1p-6, 4.0)
                   : infinity_legal ? -kInfinity
                                    : -1e4);
        break;
    }
  }
}

enum class Relation { close, equal, unrelated };

constexpr Share<Relation> kRelations[] = {
    {Relation::close, {3, 2, 2}}, {Relation::equal, {1, 2, 1}}, {Relation::unrelated, {2, 3, 4}}};

/// The first column's row, every entry the same or a little less probable.
void draw_close_row(const Tensor& first, Row row, Choices& choices) {
  row.turn = 0;
  for (std::int64_t r = 0; r < row.count; ++r) {
    const double value = first.at(row.begin + r);
    row.set(r, choices.sometimes(0.5) ? value : value - choices.log_uniform(0x1p-10, 1.0));
  }
}

}  // namespace

SupportForm pick_support_form(Temper temper, Choices& choices) {
  return pick(kForms, temper, choices);
}

void draw_support(Columns columns, Temper temper, Choices& choices) {
  const Tensor& first = *columns[0].tensor;
  const std::int64_t count = first.extents.back();
  if (count == 0) return;
  const Relation relation = pick(kRelations, temper, choices);
  const SupportForm common = pick(kForms, temper, choices);
  const bool mixed = choices.sometimes(temper == Temper::plain ? 0.3 : 0.8);
  Deal deal(kForms, temper);
  const bool infinity_legal = std::ranges::all_of(columns, &Column::may_be_infinite);
  for (std::int64_t begin = 0; begin < first.size(); begin += count) {
    const bool counts = columns[0].counts(begin, count);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      Row row{*columns[k].tensor, begin, count, 0};
      if (k > 0 && relation == Relation::close) {
        draw_close_row(first, row, choices);
      } else {
        row.turn = choices.integer(0, count - 1);
        draw_row(mixed ? deal.next(choices, counts) : common, infinity_legal, row, choices);
      }
    }
  }
  if (relation != Relation::equal) return;
  for (std::size_t k = 1; k < columns.size(); ++k) copy_values(columns[0], columns[k]);
}

}  // namespace lossgate::fuzz
