// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/edges.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// How a critic's old prediction, or its target, relates to its prediction.
enum class ValueGap {
  equal,
  mild,
  edge,   ///< on a clip edge, or where a square over- or underflows, or a neighbour of those
  spike,  ///< mild, but for one position on an edge
  far,
  huge,
  zero,  ///< the other one is 0, whatever the prediction is
};

inline constexpr ValueGap kAllValueGaps[] = {ValueGap::equal, ValueGap::mild, ValueGap::edge,
                                             ValueGap::spike, ValueGap::far,  ValueGap::huge,
                                             ValueGap::zero};

ValueGap pick_value_gap(Temper temper, Choices& choices);

/// Predictions and targets in units of the reward, all finite.
void draw_values(Columns columns, const EdgeList& edges, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
