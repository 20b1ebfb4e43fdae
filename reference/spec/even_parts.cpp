// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/even_parts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace lossgate {
namespace {

using Index = std::int64_t;

/// Parts that are made where fewer were asked for: each is a call.
constexpr Index kMostParts = 16;

/// The sequences that count, as 0 and 1.
class Counts {
 public:
  Counts(const LossSignature& signature, const Case& c)
      : counts_(static_cast<std::size_t>(std::max<Index>(c.shape[Axis::sequences], 0)), 1) {
    if (signature.empty_rows == EmptyRows::skipped) {
      const std::vector<bool> valid = valid_positions(signature, c);
      auto row = valid.begin();
      for (Index& own : counts_) {
        const auto next = row + std::max<Index>(c.shape.positions(), 0);
        own = std::find(row, next, true) != next;
        row = next;
      }
    }
    for (const Index own : counts_) all_ += own;
  }

  Index all() const { return all_; }

  /// 0 of a sequence that there is not: that is for others to refuse.
  Index of(Index sequence) const {
    return sequence >= 0 && sequence < std::ssize(counts_)
               ? counts_[static_cast<std::size_t>(sequence)]
               : 0;
  }

  Index of(const Split::Part& part) const {
    Index sum = 0;
    for (const Index sequence : part.sequences) sum += of(sequence);
    return sum;
  }

 private:
  std::vector<Index> counts_;
  Index all_ = 0;
};

bool are_even(const Split& split, const Counts& counts) {
  if (counts.all() == 0) return true;
  const Index first = counts.of(split.parts.front());
  std::map<int, Index> of_rank;
  for (const Split::Part& part : split.parts) {
    if (counts.of(part) != first) return false;
    ++of_rank[part.rank];
  }
  return std::ssize(of_rank) == split.world && std::ranges::all_of(of_rank, [&](const auto& own) {
           return own.second == of_rank.begin()->second;
         });
}

/// Of the numbers of parts to which so many come out even the nearest to the one wanted, the larger
/// where two are as near; 1 where there is none.
Index parts_of(Index count, Index wanted) {
  Index best = 1;
  const Index most = std::min(count, std::max(wanted, kMostParts));
  for (Index parts = 2; parts <= most; ++parts) {
    if (count % parts != 0) continue;
    if (best == 1 || std::abs(parts - wanted) <= std::abs(best - wanted)) best = parts;
  }
  return best;
}

}  // namespace

bool has_even_parts(const LossSignature& signature, const Case& c) {
  return !signature.even_parts || c.split.whole() || are_even(c.split, Counts(signature, c));
}

void make_parts_even(const LossSignature& signature, Case& c) {
  if (!signature.even_parts || c.split.whole()) return;
  const Counts counts(signature, c);
  if (are_even(c.split, counts)) return;
  const Index parts = parts_of(counts.all(), std::ssize(c.split.parts));
  Split even;
  if (parts > 1) {
    Index world = std::clamp<Index>(c.split.world, 1, parts);
    while (parts % world != 0) --world;
    even.world = static_cast<int>(world);
    even.parts.resize(static_cast<std::size_t>(parts));
    for (Index i = 0; i < parts; ++i) {
      even.parts[static_cast<std::size_t>(i)].rank = static_cast<int>(i % world);
    }
    const Index each = counts.all() / parts;
    Index dealt = 0;  // of those that count; what does not goes where the one before it went
    for (const Split::Part& part : c.split.parts) {
      for (const Index sequence : part.sequences) {
        dealt += counts.of(sequence);
        const Index to = std::max<Index>(dealt - 1, 0) / each;
        even.parts[static_cast<std::size_t>(to)].sequences.push_back(sequence);
      }
    }
  }
  c.split = std::move(even);
}

}  // namespace lossgate
