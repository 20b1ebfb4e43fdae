// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/edges.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// How one policy's log-probs relate to those of the first column.
enum class LogRatio {
  equal,  ///< bit for bit
  mild,   ///< a policy that has moved a little
  wide,   ///< a few nats
  ulp,    ///< equal, or a neighbour
  edge,   ///< on an edge or beside it, at every position
  spike,  ///< mild, but for one position on an edge
  far,    ///< any size up to 8192
  huge,   ///< towards the largest number of the format
};

inline constexpr LogRatio kAllLogRatios[] = {LogRatio::equal, LogRatio::mild, LogRatio::wide,
                                             LogRatio::ulp,   LogRatio::edge, LogRatio::spike,
                                             LogRatio::far,   LogRatio::huge};

LogRatio pick_log_ratio(Temper temper, Choices& choices);

/// Log-probs of taken tokens under several policies. All are <= 0; the stored differences, not only
/// the intended ones, lie on the edges. -inf stands at one position, rarely, where it is legal.
/// Where what they leave of 1 counts, some are nearly 0, at any distance.
/// `unit` is the difference that is 1 once it is scaled: most hostile cases are drawn in it.
void draw_log_probs(Columns columns, const EdgeList& edges, Temper temper, Choices& choices,
                    double unit = 1.0);

}  // namespace lossgate::fuzz
