// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/value.h"

#include <algorithm>
#include <cmath>

namespace lossgate::fuzz {
namespace {

constexpr Share<ValueGap> kGaps[] = {
    {ValueGap::equal, {1, 1, 1}}, {ValueGap::mild, {6, 2, 1}}, {ValueGap::edge, {0, 5, 3}},
    {ValueGap::spike, {0, 3, 2}}, {ValueGap::far, {0, 2, 2}},  {ValueGap::huge, {0, 0, 2}},
    {ValueGap::zero, {0, 2, 1}},
};

/// The prediction itself.
enum class Base { unit, zero, reward, large };

constexpr Share<Base> kBases[] = {
    {Base::unit, {4, 3, 1}},
    {Base::zero, {1, 3, 1}},
    {Base::reward, {1, 1, 1}},
    {Base::large, {0, 1, 1}},
};

double draw_base(Base base, Choices& choices) {
  switch (base) {
    case Base::unit:
      return choices.bell();
    case Base::zero:
      return choices.either_sign(0.0);
    case Base::reward:
      return static_cast<double>(choices.integer(0, 20)) - 10.0;
    case Base::large:
      return choices.either_sign(choices.log_uniform(100.0, 3e4));
  }
  return 0.0;
}

double draw_gap(ValueGap gap, const EdgeList& edges, Dtype dtype, Choices& choices) {
  switch (gap) {
    case ValueGap::equal:
      return 0.0;
    case ValueGap::spike:
    case ValueGap::mild:
      return choices.bell() * 0.25;
    case ValueGap::edge: {
      const double edge = choices.one_of(edges.all());
      return choices.either_sign(step_ulps(dtype, edge, static_cast<int>(choices.integer(-1, 1))));
    }
    case ValueGap::far:
      return choices.either_sign(choices.log_uniform(0x1p-20, 0x1p13));
    case ValueGap::huge:
      return draw_huge(dtype, choices);
    case ValueGap::zero:
      break;
  }
  return 0.0;
}

}  // namespace

ValueGap pick_value_gap(Temper temper, Choices& choices) { return pick(kGaps, temper, choices); }

void draw_values(Columns columns, const EdgeList& edges, Temper temper, Choices& choices) {
  const std::int64_t positions = columns[0].tensor->size();
  if (positions == 0) return;
  const Base base = pick(kBases, temper, choices);
  const bool all_on_policy = choices.sometimes(0.1);

  const Spread spread = pick_spread(temper, positions, choices);
  const std::int64_t run = run_of(spread, *columns[0].tensor);
  std::array<ValueGap, kMostColumns> gaps;
  std::array<std::int64_t, kMostColumns> spikes;
  std::vector<Deal<ValueGap>> deals(columns.size(), Deal(kGaps, temper));
  for (std::int64_t i = 0; i < positions; ++i) {
    const bool counts = i % run == 0 && columns[0].counts(i, run);
    for (std::size_t k = 0; i % run == 0 && k < columns.size(); ++k) {
      const bool on_policy = all_on_policy && columns[k].twin;
      gaps[k] = on_policy                 ? ValueGap::equal
                : spread == Spread::whole ? pick(kGaps, temper, choices)
                                          : deals[k].next(choices, counts);
      spikes[k] = gaps[k] == ValueGap::spike ? choices.integer(i, i + run - 1) : -1;
    }
    columns[0].tensor->set(i, draw_base(base, choices));
    const double stored = columns[0].tensor->at(i);
    for (std::size_t k = 1; k < columns.size(); ++k) {
      const Dtype dtype = columns[k].tensor->dtype;
      const double most = max_finite(dtype);
      const ValueGap gap = spikes[k] == i ? ValueGap::edge : gaps[k];
      const double value = gap == ValueGap::zero ? choices.either_sign(0.0)
                                                 : stored - draw_gap(gap, edges, dtype, choices);
      columns[k].tensor->set(i, std::clamp(value, -most, most));
    }
  }
}

}  // namespace lossgate::fuzz
