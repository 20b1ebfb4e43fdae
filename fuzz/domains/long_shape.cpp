// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/long_shape.h"

#include <algorithm>
#include <bit>

#include "fuzz/domains/shape.h"

namespace lossgate::fuzz {
namespace {

/// How long an axis is drawn often, and how long it is in production.
struct Lengths {
  Axis axis;
  std::int64_t often, production;
};

/// Blocks of threads end at 1,024, tiles of a vocabulary at a power of two up to 262,144, the
/// second axis of a grid at 65,535, exact counts of a half at 2,048. What is dealt to blocks leaves
/// one over, which is lost most easily, or nothing, which is taken for all.
constexpr Lengths kLong[] = {
    {Axis::sequences, 16, 4096}, {Axis::tokens, 128, 66561}, {Axis::vocab, 128, 262209},
    {Axis::hidden, 16, 16385},   {Axis::support, 8, 257},
};

/// A batch of long answers: of 8, 16 or 32 sequences and 256 tokens blocks leave one over.
/// Or so many that there are more than 2^17 positions, of tokens alone.
constexpr Tier kSequences = {Axis::sequences, 33, 33}, kManySequences = {Axis::sequences, 513, 513};
constexpr std::int64_t kTokensOfThose = 259, kCrossedBudget = 1 << 16;

/// A vocabulary or a hidden state of that many more fills all that threads take at once.
constexpr std::int64_t kBlock = 128;

/// What blocks of a few sizes leave over; a wide list; a row of which so many have 2^20 logits.
constexpr std::int64_t kSeveralBlocks = 515, kFew = 9, kMegaRow = 2051;

/// Whoever takes four at a time, or else pairs, has code of its own for what is twice an odd
/// number.
constexpr std::int64_t kFour = 4;

/// What is longer leaves one of everything else, two of the vocabulary, and as many sequences as
/// are asked for.
constexpr std::int64_t kLongBudget = 1 << 15;

/// What axes of one extent leave of a length: 80 MB of f64 for each field.
constexpr std::int64_t kLongWork = std::int64_t{10} << 20;

/// Of the axes along which it may be long: a message has those of what it says.
std::vector<Lengths> axis_lengths(const LossSignature& signature) {
  std::vector<Axis> axes;
  for_each_axis(signature, [&](Axis axis) { axes.push_back(axis); });
  std::vector<Lengths> all;
  for (const Lengths& lengths : kLong) {
    if (!contains(axes, lengths.axis) || signature.pinned_extent(lengths.axis)) continue;
    all.push_back(lengths);
  }
  return all;
}

/// As in production, or as callers promise at most.
std::int64_t longest(const LossSignature& signature, const Lengths& lengths) {
  std::int64_t most = lengths.production;
  if (const auto promised = signature.longest_extent(lengths.axis)) {
    most = std::min(most, *promised);
  }
  most = std::min(most, kLongWork / pinned_work(signature));
  if (lengths.axis != Axis::support) return most;
  // What is listed is listed once.
  const auto vocab = signature.pinned_extent(Axis::vocab);
  const auto room = vocab ? vocab : signature.longest_extent(Axis::vocab);
  return room ? std::min(most, *room) : most;
}

/// Whether a case may have so many sequences.
bool may_have(const LossSignature& signature, const Shape& shape, std::int64_t count) {
  return shape[Axis::sequences] >= 0 && !signature.pinned_extent(Axis::sequences) &&
         signature.longest_extent(Axis::sequences).value_or(count) >= count;
}

}  // namespace

std::vector<Tier> tiers(const LossSignature& signature) {
  std::vector<Tier> tiers;
  for (const Lengths& lengths : axis_lengths(signature)) {
    const std::int64_t most = longest(signature, lengths);
    const bool asked_by_itself = most > most_drawn(signature, lengths.axis);
    for (std::int64_t below = lengths.often; below < most; below *= 2) {
      if (2 * below > most && asked_by_itself) break;
      const std::int64_t last = std::min(2 * below, most), block = std::min(below / 2, kBlock);
      const Tier odd = {lengths.axis, below + 1, last - 1 + last % 2, 2};
      const Tier full = {lengths.axis, below + block, last - last % block, block};
      if (below < kThousands) tiers.push_back(odd);
      if (full.first <= full.last) tiers.push_back(full);
    }
    const std::int64_t of_pairs = lengths.often + 2, room = std::min(most, kThousands) - of_pairs;
    if (room >= 0) {
      tiers.push_back({lengths.axis, of_pairs, of_pairs + room / kFour * kFour, kFour});
    }
  }
  return tiers;
}

std::vector<Tier> longest_tiers(const LossSignature& signature) {
  std::vector<Tier> tiers;
  for (const Lengths& lengths : axis_lengths(signature)) {
    const std::int64_t most = longest(signature, lengths);
    if (most > most_drawn(signature, lengths.axis)) tiers.push_back({lengths.axis, most, most});
  }
  return tiers;
}

std::vector<Tier> crossed_tiers(const LossSignature& signature) {
  const auto may_be = [&](Axis axis, std::int64_t extent) {
    return signature.has_axis(axis) && !signature.pinned_extent(axis) &&
           signature.longest_extent(axis).value_or(extent) >= extent;
  };
  const auto has_room = [&](std::int64_t positions) {
    return positions * pinned_work(signature) <= kLongWork;
  };
  std::vector<Tier> tiers;
  if (!may_be(Axis::tokens, kSeveralBlocks)) return tiers;
  if (may_be(Axis::sequences, kSequences.last) && has_room(kSequences.last * kTokensOfThose)) {
    tiers.push_back(kSequences);
  }
  constexpr Axis kOfPositions[] = {Axis::vocab, Axis::hidden, Axis::support};
  const bool alone =
      std::ranges::none_of(kOfPositions, [&](Axis axis) { return signature.has_axis(axis); });
  if (alone && may_be(Axis::sequences, kManySequences.last)) {
    tiers.push_back(kManySequences);
  }
  if (!may_be(Axis::vocab, kSeveralBlocks) || !has_room((kBlock + 3) * kSeveralBlocks))
    return tiers;
  tiers.push_back({Axis::tokens, kBlock + 1, kBlock + 3, 2});
  tiers.push_back({Axis::tokens, kSeveralBlocks - 2, kSeveralBlocks, 2});
  if (has_room(kSeveralBlocks * kMegaRow) && may_be(Axis::vocab, kMegaRow)) {
    tiers.push_back({Axis::vocab, kMegaRow - 2, kMegaRow, 2});
  }
  if (may_be(Axis::hidden, kBlock + 3)) {
    tiers.push_back({Axis::hidden, kBlock + 1, kBlock + 3, 2});
  }
  return tiers;
}

Shape draw_crossed_shape(const LossSignature& signature, const Tier& tier, Choices& choices) {
  Shape shape = draw_extents(signature, Temper::plain, choices);
  shape[tier.axis] = choices.sometimes(0.5) ? tier.first : tier.last;
  shape[tier.axis] = std::max(shape[tier.axis], signature.least_extent(tier.axis));
  if (tier.axis == Axis::sequences) {
    shape[Axis::tokens] = kTokensOfThose;
    constexpr Axis kOrder[] = {Axis::hidden, Axis::support, Axis::vocab};
    give_way(signature, kCrossedBudget, kOrder, shape);
    leave_room_for_lists(signature, shape);
    return shape;
  }
  if (!signature.pinned_extent(Axis::sequences)) shape[Axis::sequences] = 1;
  const bool has_list = signature.has_axis(Axis::support);
  if (tier.axis == Axis::hidden) {
    shape[Axis::tokens] = kFew;
    shape[Axis::vocab] = std::max(kSeveralBlocks, signature.least_extent(Axis::vocab));
  } else if (tier.axis == Axis::vocab) {
    shape[Axis::tokens] = kSeveralBlocks;
  } else if (tier.last < kSeveralBlocks) {
    shape[Axis::vocab] = std::max(kSeveralBlocks, signature.least_extent(Axis::vocab));
  } else if (has_list && !signature.pinned_extent(Axis::support)) {
    shape[Axis::support] = std::min(kFew, signature.longest_extent(Axis::support).value_or(kFew));
    shape[Axis::vocab] = std::max(shape[Axis::vocab], shape[Axis::support]);
  } else if (!has_list) {
    shape[Axis::vocab] = kFew;
  }
  return shape;
}

std::optional<Axis> long_axis_of(const LossSignature& signature, const Shape& shape) {
  for (const Lengths& lengths : axis_lengths(signature)) {
    if (shape[lengths.axis] > most_drawn(signature, lengths.axis)) return lengths.axis;
  }
  return std::nullopt;
}

Shape draw_long_shape(const LossSignature& signature, const Tier& tier, Choices& choices,
                      std::int64_t least_sequences) {
  const Axis axis = tier.axis;
  Shape shape = draw_extents(signature, Temper::plain, choices);
  // Of thousands no other tier has odd ones, and vocabularies are of any length. Else production
  // has powers of two most.
  const bool any = tier.first > kThousands && tier.every > 1;
  const std::int64_t every = any ? 1 : tier.every;
  const std::int64_t between =
      tier.first + choices.integer(0, (tier.last - tier.first) / every) * every;
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(tier.last));
  const std::int64_t extents[] = {any ? between : tier.first, between,
                                  any && !is_power ? between : tier.last,
                                  is_power ? tier.last : between};
  shape[axis] = std::max(choices.one_of(extents), signature.least_extent(axis));
  if (axis == Axis::support && shape[Axis::vocab] > 0) {
    shape[Axis::vocab] = std::max(shape[Axis::vocab], shape[axis]);
  }
  std::vector<Axis> order = {Axis::tokens, Axis::sequences, Axis::hidden, Axis::support,
                             Axis::vocab};
  std::erase(order, axis);
  if (axis == Axis::support) std::erase(order, Axis::vocab);
  const bool has_room = may_have(signature, shape, least_sequences) &&
                        least_sequences * shape[axis] * pinned_work(signature) <= kLongWork;
  const std::int64_t least = has_room ? least_sequences : 1;
  if (has_room) shape[Axis::sequences] = std::max(shape[Axis::sequences], least);
  give_way(signature, kLongBudget, order, shape, least);
  leave_room_for_lists(signature, shape);
  return shape;
}

}  // namespace lossgate::fuzz
