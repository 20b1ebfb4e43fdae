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
using Parts = std::vector<Split::Part>;

/// Parts that are made where fewer were asked for, on all ranks: each is a call.
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

  Index of(const Parts& parts) const {
    Index sum = 0;
    for (const Split::Part& part : parts) sum += of(part);
    return sum;
  }

 private:
  std::vector<Index> counts_;
  Index all_ = 0;
};

/// Of each rank that has some, in their order.
std::map<int, Parts> by_rank(const Parts& parts) {
  std::map<int, Parts> ranks;
  for (const Split::Part& part : parts) ranks[part.rank].push_back(part);
  return ranks;
}

bool are_even(const Parts& parts, const Counts& counts) {
  return std::ranges::all_of(
      parts, [&](const Split::Part& part) { return counts.of(part) == counts.of(parts.front()); });
}

bool is_even(const LossSignature& signature, const Split& split, const Counts& counts) {
  if (counts.all() == 0) return true;
  const auto ranks = by_rank(split.parts);
  const bool parts =
      std::ranges::all_of(ranks, [&](const auto& rank) { return are_even(rank.second, counts); });
  const bool totals =
      std::ssize(ranks) == split.world && std::ranges::all_of(ranks, [&](const auto& rank) {
        return counts.of(rank.second) == counts.of(ranks.begin()->second);
      });
  return (parts || !signature.even_parts) && (totals || !signature.even_ranks);
}

/// Of the numbers of parts to which so many come out even the nearest to the one wanted, the larger
/// where two are as near; 1 where there is none.
Index parts_of(Index count, Index wanted, Index most) {
  Index best = 1;
  most = std::min(count, std::max(wanted, most));
  for (Index parts = 2; parts <= most; ++parts) {
    if (count % parts != 0) continue;
    if (best == 1 || std::abs(parts - wanted) <= std::abs(best - wanted)) best = parts;
  }
  return best;
}

/// Whose turn it is of `takers` who take `each` that count, once so many were taken: what does not
/// count goes where the one before it went.
Index turn(Index taken, Index each, Index takers) {
  return std::min(std::max<Index>(taken - 1, 0) / each, takers - 1);
}

/// The same sequences on as many ranks of equally many as there were, or on fewer.
Split on_even_ranks(const Split& split, const Counts& counts) {
  Index world = std::clamp<Index>(split.world, 1, counts.all());
  while (counts.all() % world != 0) --world;
  Split even{.world = static_cast<int>(world), .parts = {}};
  Index taken = 0;
  const auto rank = [&] { return static_cast<int>(turn(taken, counts.all() / world, world)); };
  for (const Split::Part& part : split.parts) {
    even.parts.push_back({.rank = rank(), .sequences = {}});
    for (const Index sequence : part.sequences) {
      taken += counts.of(sequence);
      Split::Part& last = even.parts.back();
      if (last.sequences.empty()) last.rank = rank();
      if (last.rank != rank()) even.parts.push_back({.rank = rank(), .sequences = {}});
      even.parts.back().sequences.push_back(sequence);
    }
  }
  return even;
}

/// One rank's, as large as each other.
Parts made_even(const Parts& own, Index most, const Counts& counts) {
  if (are_even(own, counts)) return own;
  const Index all = counts.of(own), parts = parts_of(all, std::ssize(own), most);
  Parts even(static_cast<std::size_t>(parts), {.rank = own.front().rank, .sequences = {}});
  Index taken = 0;
  for (const Split::Part& part : own) {
    for (const Index sequence : part.sequences) {
      taken += counts.of(sequence);
      const Index to = turn(taken, all / parts, parts);
      even[static_cast<std::size_t>(to)].sequences.push_back(sequence);
    }
  }
  return even;
}

}  // namespace

bool has_even_parts(const LossSignature& signature, const Case& c) {
  const bool any = signature.even_parts || signature.even_ranks;
  return !any || c.split.whole() || is_even(signature, c.split, Counts(signature, c));
}

void make_parts_even(const LossSignature& signature, Case& c) {
  if (has_even_parts(signature, c)) return;
  const Counts counts(signature, c);
  Split even = signature.even_ranks ? on_even_ranks(c.split, counts) : c.split;
  if (signature.even_parts) {
    Parts parts;
    const auto ranks = by_rank(even.parts);
    for (const auto& [rank, own] : ranks) {
      const Parts made = made_even(own, kMostParts / std::ssize(ranks), counts);
      parts.insert(parts.end(), made.begin(), made.end());
    }
    even.parts = std::move(parts);
  }
  if (even.world == 1 && even.parts.size() == 1) even = {};
  c.split = std::move(even);
}

}  // namespace lossgate
