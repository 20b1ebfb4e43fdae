// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace lossgate {

/// The named axes of fields and outputs, which list theirs in this order, each at most once.
enum class Axis { sequences, tokens, vocab, hidden, support, responses, bytes };

inline constexpr Axis kAllAxes[] = {Axis::sequences, Axis::tokens,    Axis::vocab, Axis::hidden,
                                    Axis::support,   Axis::responses, Axis::bytes};

constexpr std::string_view name(Axis axis) {
  switch (axis) {
    case Axis::sequences:
      return "sequences";
    case Axis::tokens:
      return "tokens";
    case Axis::vocab:
      return "vocab";
    case Axis::hidden:
      return "hidden";
    case Axis::support:
      return "support";
    case Axis::responses:
      return "responses";
    case Axis::bytes:
      return "bytes";
  }
  return "?";
}

inline bool contains(const std::vector<Axis>& axes, Axis axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

/// Whether there is one entry or more for each sequence, so that a split deals them out.
inline bool has_rows(const std::vector<Axis>& axes) {
  return !axes.empty() && axes[0] == Axis::sequences;
}

/// Whether there is one entry or more for each position, so that a mask can silence them.
inline bool has_positions(const std::vector<Axis>& axes) {
  return has_rows(axes) && axes.size() >= 2 && axes[1] == Axis::tokens;
}

}  // namespace lossgate
