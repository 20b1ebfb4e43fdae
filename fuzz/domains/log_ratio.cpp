// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/log_ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace lossgate::fuzz {
namespace {

constexpr Share<LogRatio> kRatios[] = {
    {LogRatio::equal, {2, 1, 1}}, {LogRatio::mild, {6, 1, 1}}, {LogRatio::wide, {1, 1, 1}},
    {LogRatio::ulp, {0, 2, 1}},   {LogRatio::edge, {0, 7, 3}}, {LogRatio::spike, {0, 4, 3}},
    {LogRatio::far, {0, 7, 3}},   {LogRatio::huge, {0, 4, 2}},
};

/// The first column itself.
enum class Base { likely, spread, certain, deep };

constexpr Share<Base> kBases[] = {
    {Base::likely, {3, 2, 1}},
    {Base::spread, {3, 2, 1}},
    {Base::certain, {0, 2, 1}},
    {Base::deep, {0, 2, 1}},
};

double draw_base(Base base, Choices& choices) {
  switch (base) {
    case Base::likely:
      return -choices.log_uniform(0x1p-10, 4.0);
    case Base::spread:
      return choices.real(0.0, -12.0);
    case Base::certain:
      return choices.either_sign(0.0);
    case Base::deep:
      return -choices.log_uniform(0x1p3, 0x1p7);  // far from the log-prob that a model computes
  }
  return 0.0;
}

double draw_edge(const EdgeList& edges, Dtype dtype, Choices& choices) {
  const double edge = choices.one_of(choices.sometimes(0.35) ? edges.all() : edges.own());
  const double stepped = step_ulps(dtype, edge, static_cast<int>(choices.integer(-1, 1)));
  return choices.either_sign(stepped);
}

/// log_prob of the first column minus that of another.
double draw_difference(LogRatio ratio, const EdgeList& edges, Dtype dtype, Choices& choices) {
  switch (ratio) {
    case LogRatio::equal:
    case LogRatio::ulp:
      return 0.0;
    case LogRatio::spike:
    case LogRatio::mild:
      return choices.bell() * 0.0625;
    case LogRatio::wide:
      return choices.bell() * 2.0;
    case LogRatio::edge:
      return draw_edge(edges, dtype, choices);
    case LogRatio::far: {
      // Small; around the overflow of exp in f16, at 11, and the usual clamp, at 20; around that of
      // exp in f32, at 88, and far beyond it.
      constexpr double kBorders[] = {0x1p-24, 0x1p3, 0x1p5, 0x1p13};
      const auto zone = choices.integer(0, 2);
      return choices.either_sign(choices.log_uniform(kBorders[zone], kBorders[zone + 1]));
    }
    case LogRatio::huge:
      return draw_huge(dtype, choices);
  }
  return 0.0;
}

/// Where what a probability leaves counts, a certain one is an end of the formula, which hides all
/// other positions behind what is infinite: mostly such numbers are nearly certain instead. In some
/// cases they may be so nearly certain that exp of them rounds to 1, and so may a tenth of the
/// rest.
void leave_some_rest(const Column& column, Choices& choices) {
  const double u = unit_roundoff(column.tensor->dtype);
  const bool certain = choices.sometimes(0.25), rounds = choices.sometimes(0.3);
  for (std::int64_t i = 0; i < column.tensor->size(); ++i) {
    const bool moves = column.tensor->at(i) == 0.0 ? !certain : rounds && choices.sometimes(0.1);
    if (moves) column.tensor->set(i, -choices.log_uniform(rounds ? u / 16 : 16 * u, 0x1p-3));
  }
}

/// Who has no other policy hands on zeros for its log-probs, which are a policy's all the same.
void take_zeros_for_policies(Columns columns) {
  for (const Column& column : columns) {
    if (column.field->role != Role::constant) continue;
    for (std::int64_t i = 0; i < column.tensor->size(); ++i) column.tensor->set(i, 0.0);
  }
}

/// What is drawn once for a column.
struct Policy {
  LogRatio ratio = LogRatio::equal;
  std::int64_t spike = -1;
  double unit = 1.0;  ///< of its differences
};

using Policies = std::array<Policy, kMostColumns>;

/// Of the `run` positions from `first` on.
Policy draw_policy(LogRatio ratio, double unit, std::int64_t first, std::int64_t run,
                   Choices& choices) {
  const std::int64_t spike =
      ratio == LogRatio::spike ? choices.integer(first, first + run - 1) : -1;
  return {ratio, spike, ratio == LogRatio::huge ? 1.0 : unit};
}

/// How all twins of the first column relate to it where they are one policy, or nearly: from what
/// every tolerance takes for equal to what none should. Partners are the same, or not related.
std::optional<Policy> draw_one_policy(Temper temper, std::int64_t positions, Choices& choices) {
  const bool plain = temper == Temper::plain;
  const bool one = choices.sometimes(plain ? 0.2 : 0.07);
  if (!one || (plain && positions >= kMany)) return std::nullopt;
  if (plain || choices.sometimes(0.7)) return Policy{};
  return Policy{.ratio = LogRatio::mild, .unit = choices.log_uniform(0x1p-16, 0x1p-4)};
}

void draw_position(Columns columns, const Policies& policies, std::int64_t i, Base base,
                   const EdgeList& edges, Choices& choices) {
  const double least = -max_finite(columns[0].tensor->dtype);
  std::array<double, kMostColumns> difference;
  double lowest = 0.0;
  bool exact = false;
  for (std::size_t k = 1; k < columns.size(); ++k) {
    const LogRatio ratio = policies[k].spike == i ? LogRatio::edge : policies[k].ratio;
    const Dtype dtype = columns[k].tensor->dtype;
    difference[k] =
        round_to(dtype, policies[k].unit * draw_difference(ratio, edges, dtype, choices));
    lowest = std::min(lowest, difference[k]);
    exact = exact || ratio == LogRatio::edge;
  }
  // No log-prob may be positive: the first one makes room for whatever lies above it. With one side
  // at 0 the stored difference is the edge to the last bit.
  const bool anchored = exact && choices.sometimes(0.8);
  const double room = anchored ? 0.0 : draw_base(base, choices);
  const double first = lowest == 0.0 ? room : lowest + room;  // a sum would lose the sign of -0
  columns[0].tensor->set(i, std::max(first, least));
  const double stored = columns[0].tensor->at(i);
  for (std::size_t k = 1; k < columns.size(); ++k) {
    const Dtype dtype = columns[k].tensor->dtype;
    double value = stored - difference[k];
    if (policies[k].ratio == LogRatio::ulp) {
      value = step_ulps(dtype, stored, static_cast<int>(choices.integer(-1, 1)));
    }
    columns[k].tensor->set(i, std::clamp(value, -max_finite(dtype), 0.0));
  }
}

}  // namespace

LogRatio pick_log_ratio(Temper temper, Choices& choices) { return pick(kRatios, temper, choices); }

void draw_log_probs(Columns columns, const EdgeList& edges, Temper temper, Choices& choices,
                    double unit) {
  const std::int64_t positions = columns[0].tensor->size();
  if (positions == 0) return;
  const Base base = pick(kBases, temper, choices);
  const Spread spread = pick_spread(temper, positions, choices);
  const std::int64_t run = run_of(spread, *columns[0].tensor);
  const bool scaled = unit != 1.0 && temper != Temper::plain && choices.sometimes(0.7);
  const std::optional<Policy> one_policy = draw_one_policy(temper, positions, choices);
  std::vector<Deal<LogRatio>> deals(columns.size(), Deal(kRatios, temper));
  Policies policies;
  for (std::int64_t i = 0; i < positions; ++i) {
    const bool counts = i % run == 0 && columns[0].counts(i, run);
    for (std::size_t k = 1; i % run == 0 && k < columns.size(); ++k) {
      if (one_policy && columns[k].twin) {
        policies[k] = *one_policy;
        continue;
      }
      const LogRatio ratio =
          spread == Spread::whole ? pick(kRatios, temper, choices) : deals[k].next(choices, counts);
      policies[k] = draw_policy(ratio, scaled ? unit : 1.0, i, run, choices);
    }
    draw_position(columns, policies, i, base, edges, choices);
  }
  const bool equal = one_policy && one_policy->ratio == LogRatio::equal;
  for (const Column& column : columns) {
    if (equal && column.partner >= 0) {
      copy_values(columns[static_cast<std::size_t>(column.partner)], column);
    }
  }
  if (temper != Temper::plain && choices.sometimes(0.03)) take_zeros_for_policies(columns);
  for (const Column& column : columns) {
    if (temper != Temper::plain && column.field->leaves_rest) leave_some_rest(column, choices);
  }
  if (temper == Temper::plain || !choices.sometimes(0.06)) return;
  const auto last = static_cast<std::int64_t>(columns.size()) - 1;
  const Column& column = columns[static_cast<std::size_t>(choices.integer(0, last))];
  if (column.may_be_infinite()) {
    column.tensor->set(choices.integer(0, positions - 1), -std::numeric_limits<double>::infinity());
  }
}

}  // namespace lossgate::fuzz
