// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/logits.h"

#include <algorithm>
#include <limits>

#include "fuzz/edges.h"

namespace lossgate::fuzz {
namespace {

constexpr Share<LogitForm> kForms[] = {
    {LogitForm::normal, {8, 3, 1}},       {LogitForm::equal, {1, 1, 1}},
    {LogitForm::peaked, {2, 2, 1}},       {LogitForm::nearly_equal, {0, 1, 1}},
    {LogitForm::offset, {0, 2, 2}},       {LogitForm::disjoint, {0, 2, 2}},
    {LogitForm::underflowing, {0, 2, 2}}, {LogitForm::masked_columns, {0, 2, 2}},
    {LogitForm::masked_tile, {0, 2, 1}},  {LogitForm::subnormal, {0, 1, 1}},
    {LogitForm::largest, {0, 0, 2}},
};

/// What the columns of one row share.
struct RowPlan {
  LogitForm form;
  std::int64_t vocab;
  std::int64_t hot;        ///< a token that is likely and never masked
  std::int64_t live_from;  ///< masked_tile: the first token that is not masked
  double level;
  std::uint64_t holes;  ///< masked_columns: a pattern of tokens
};

/// What is added to all logits of a row, of either sign: beyond what a running maximum or a masked
/// token begins with, and as far as what lies apart by 1 keeps a few of its bits.
double draw_offset(Dtype dtype, Choices& choices) {
  const double most = std::clamp(0.125 / unit_roundoff(dtype), 2e4, 1e6);
  return choices.either_sign(choices.log_uniform(100.0, most));
}

RowPlan plan_row(LogitForm form, std::int64_t vocab, Dtype dtype, Choices& choices) {
  RowPlan plan{form, vocab, choices.integer(0, vocab - 1), 0, 0.0, 0};
  constexpr double kGaps[] = {60.0, 104.0, 200.0, 1000.0};
  switch (form) {
    case LogitForm::normal:
      plan.level = choices.sometimes(0.3) ? 5.0 : 1.0;
      break;
    case LogitForm::equal:
    case LogitForm::nearly_equal:
      plan.level = choices.bell() * 4.0;
      break;
    case LogitForm::peaked:
      plan.level = choices.real(5.0, 40.0);
      break;
    case LogitForm::offset:
      plan.level = draw_offset(dtype, choices);
      break;
    case LogitForm::disjoint:
    case LogitForm::underflowing:
      plan.level = choices.one_of(kGaps);
      break;
    case LogitForm::masked_columns:
      plan.holes = static_cast<std::uint64_t>(choices.integer(1, INT64_MAX));
      break;
    case LogitForm::masked_tile:
      plan.live_from = choices.sometimes(0.5) ? vocab / 2 : vocab - 1;
      plan.hot = vocab - 1;
      break;
    case LogitForm::subnormal:
    case LogitForm::largest:
      break;
  }
  return plan;
}

double draw_logit(const RowPlan& plan, Dtype dtype, std::int64_t hot, std::int64_t token,
                  double impossible, Choices& choices) {
  switch (plan.form) {
    case LogitForm::normal:
      return choices.bell() * plan.level;
    case LogitForm::equal:
      return plan.level;
    case LogitForm::nearly_equal:
      return step_ulps(dtype, plan.level, static_cast<int>(choices.integer(0, 4)) - 2);
    case LogitForm::offset:
      return choices.bell() * 2.0 + plan.level;
    case LogitForm::disjoint:
    case LogitForm::peaked:
      return choices.bell() + (token == hot ? plan.level : 0.0);
    case LogitForm::underflowing:
      return token == hot ? 0.0 : -plan.level * choices.log_uniform(1.0, 8.0);
    case LogitForm::masked_columns: {
      const bool hole = token != plan.hot && (plan.holes >> (token % 61) & 1);
      return hole ? impossible : choices.bell();
    }
    case LogitForm::masked_tile:
      return token < plan.live_from ? impossible : choices.bell();
    case LogitForm::subnormal:
      return min_subnormal(dtype) * static_cast<double>(choices.integer(0, 64) - 32);
    case LogitForm::largest: {
      constexpr double kShares[] = {0.0, 1.0, -1.0, 0.5, -0.5};
      return max_finite(dtype) * choices.one_of(kShares);
    }
  }
  return 0.0;
}

/// How often one model's row lies elsewhere than the other's, or has other tokens ruled out: who
/// takes one maximum for both, or drops what either rules out, shows in no rows that are alike.
constexpr double kApart = 0.4;

RowPlan plan_beside(const RowPlan& plan, Dtype dtype, Choices& choices) {
  RowPlan other = plan_row(plan.form, plan.vocab, dtype, choices);
  other.hot = plan.hot;
  return other;
}

void draw_row(const Column& column, const RowPlan& plan, std::int64_t begin, std::int64_t hot,
              bool infinity_legal, Choices& choices) {
  Tensor& tensor = *column.tensor;
  const double impossible = infinity_legal ? -std::numeric_limits<double>::infinity()
                                           : -std::min(1e9, max_finite(tensor.dtype) / 2);
  for (std::int64_t token = 0; token < plan.vocab; ++token) {
    tensor.set(begin + token, draw_logit(plan, tensor.dtype, hot, token, impossible, choices));
  }
}

}  // namespace

LogitForm pick_logit_form(Temper temper, Choices& choices) { return pick(kForms, temper, choices); }

void draw_logits(Columns columns, Temper temper, Choices& choices) {
  const Tensor& first = *columns[0].tensor;
  const std::int64_t vocab = first.extents.empty() ? 1 : first.extents.back();
  const Dtype dtype = coarsest_dtype(columns);
  const LogitForm common = pick(kForms, temper, choices);
  const bool mixed = choices.sometimes(temper == Temper::plain ? 0.25 : 0.8);
  Deal deal(kForms, temper);
  const bool equal_columns = choices.sometimes(temper == Temper::plain ? 0.1 : 0.2);
  const bool copyable = !equal_columns || std::ranges::all_of(columns, &Column::may_be_infinite);
  for (std::int64_t begin = 0; begin < first.size(); begin += vocab) {
    const LogitForm form = mixed ? deal.next(choices, columns[0].counts(begin, vocab)) : common;
    const RowPlan plan = plan_row(form, vocab, dtype, choices);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::int64_t step = form == LogitForm::disjoint ? static_cast<std::int64_t>(k) : 0;
      const bool apart = k > 0 && temper != Temper::plain && choices.sometimes(kApart);
      draw_row(columns[k], apart ? plan_beside(plan, dtype, choices) : plan, begin,
               (plan.hot + step) % vocab, columns[k].may_be_infinite() && copyable, choices);
    }
  }
  if (!equal_columns) return;
  for (std::size_t k = 1; k < columns.size(); ++k) copy_values(columns[0], columns[k]);
}

}  // namespace lossgate::fuzz
