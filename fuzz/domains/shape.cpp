// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/shape.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

namespace lossgate::fuzz {
namespace {

constexpr Share<int> kSequences[] = {
    {1, {2, 1, 2}}, {2, {4, 2, 2}},  {3, {3, 3, 2}},  {4, {4, 3, 2}},  {5, {0, 3, 2}},
    {8, {0, 4, 2}}, {13, {0, 3, 2}}, {33, {0, 0, 1}}, {65, {0, 0, 1}},
};

constexpr Share<int> kTokens[] = {
    {1, {1, 1, 2}},  {2, {1, 2, 2}},   {3, {2, 2, 2}},   {4, {4, 1, 1}},
    {5, {2, 2, 1}},  {8, {4, 2, 1}},   {13, {2, 2, 1}},  {16, {3, 1, 1}},
    {17, {0, 2, 1}}, {32, {1, 1, 1}},  {33, {0, 1, 2}},  {64, {0, 1, 1}},
    {65, {0, 0, 2}}, {127, {0, 0, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

/// Where a position is a few numbers, no row of them: a case of many asks more, at no great cost.
constexpr Share<int> kTokensAlone[] = {
    {1, {1, 1, 1}},  {2, {1, 0, 1}},   {3, {2, 1, 1}},   {4, {4, 0, 1}},
    {5, {2, 0, 1}},  {8, {4, 0, 1}},   {13, {2, 1, 1}},  {16, {3, 1, 1}},
    {17, {0, 3, 2}}, {32, {1, 2, 2}},  {33, {0, 4, 3}},  {64, {0, 1, 1}},
    {65, {0, 1, 3}}, {127, {0, 0, 1}}, {129, {0, 1, 1}}, {257, {0, 0, 1}},
};

constexpr Share<int> kVocab[] = {
    {2, {1, 3, 1}},    {3, {1, 3, 1}},    {5, {2, 1, 1}},    {16, {3, 1, 1}},    {17, {1, 3, 1}},
    {32, {2, 1, 1}},   {33, {1, 1, 1}},   {64, {0, 1, 1}},   {100, {1, 1, 1}},   {257, {0, 1, 2}},
    {1000, {0, 1, 2}}, {1024, {0, 0, 1}}, {4099, {0, 1, 2}}, {32771, {0, 0, 1}},
};

/// A row of a matrix is a few numbers mostly, or a block of a kernel and what lies beside it.
constexpr Share<int> kHidden[] = {
    {1, {1, 1, 1}},  {2, {1, 1, 1}},  {3, {1, 2, 1}},  {4, {1, 1, 1}},
    {5, {1, 2, 1}},  {7, {1, 1, 1}},  {8, {1, 1, 1}},  {9, {1, 1, 1}},
    {16, {0, 1, 1}}, {33, {0, 1, 1}}, {65, {0, 1, 1}}, {128, {0, 0, 1}},
};

constexpr Share<int> kSupport[] = {
    {1, {1, 1, 1}}, {2, {1, 2, 1}}, {3, {1, 2, 1}}, {4, {1, 2, 1}},
    {5, {0, 1, 1}}, {8, {0, 1, 1}}, {9, {0, 1, 1}},
};

/// Whether the loss has rows of numbers at its positions.
bool is_wide(const LossSignature& signature) {
  return signature.has_axis(Axis::vocab) || signature.has_axis(Axis::hidden) ||
         signature.has_axis(Axis::support);
}

/// Whether each sequence is a position of a number or two, as a pair of answers is, or an answer's
/// reward.
bool has_positions_alone(const LossSignature& signature) {
  const auto is_number = [](const Field& field) { return field.dtypes.empty(); };
  return !signature.has_axis(Axis::tokens) && !signature.has_axis(Axis::bytes) &&
         std::ranges::any_of(signature.fields, is_number);
}

std::int64_t draw_extent(Axis axis, bool wide, bool alone, Temper temper, Choices& choices) {
  switch (axis) {
    case Axis::sequences:
      return alone ? pick(kTokensAlone, temper, choices) : pick(kSequences, temper, choices);
    case Axis::tokens:
      return wide ? pick(kTokens, temper, choices) : pick(kTokensAlone, temper, choices);
    case Axis::vocab:
      return pick(kVocab, temper, choices);
    case Axis::hidden:
      return pick(kHidden, temper, choices);
    case Axis::support:
      return pick(kSupport, temper, choices);
    case Axis::responses:
      // From ten on the order of numbers is not that of their names.
      return temper != Temper::plain && choices.sometimes(0.1) ? choices.integer(10, 12)
                                                               : choices.integer(1, 4);
    case Axis::bytes:
      return 1;  // a message is as long as what it says
  }
  return 1;
}

/// How long an axis is drawn often and at most, and how long it is in production.
struct Lengths {
  Axis axis;
  std::int64_t often, drawn, production;
};

/// Blocks of threads end at 1,024, tiles of a vocabulary at 65,536 or 131,072, the second axis of a
/// grid at 65,535, exact counts of a half at 2,048. What is dealt to blocks leaves one over, which
/// is lost most easily, or nothing, which is taken for all.
constexpr Lengths kLong[] = {
    {Axis::sequences, 16, std::end(kSequences)[-1].kind, 4096},
    {Axis::tokens, 128, std::end(kTokens)[-1].kind, 66561},
    {Axis::vocab, 128, std::end(kVocab)[-1].kind, 132097},
    {Axis::hidden, 16, std::end(kHidden)[-1].kind, 16385},
    {Axis::support, 8, std::end(kSupport)[-1].kind, 257},
};

/// A vocabulary or a hidden state of that many more fills all that threads take at once.
constexpr std::int64_t kBlock = 128;

/// Blocks of a few sizes, and what they leave over; a list that is wider than most.
constexpr std::int64_t kSeveralBlocks = 515, kFew = 9;

/// From there on a case takes a second and more.
constexpr std::int64_t kThousands = 8192;

/// Numbers of a field: two rows of the widest vocabulary of a nasty case; of a large case.
constexpr std::int64_t kBudget = std::int64_t{2} * 4099, kLargeBudget = 1 << 16;

/// What is longer leaves one of everything else, two of the vocabulary, and as many sequences as
/// are asked for.
constexpr std::int64_t kLongBudget = 1 << 15;

/// What axes of one extent leave of a length: 80 MB of f64 for each field.
constexpr std::int64_t kLongWork = std::int64_t{10} << 20;

std::int64_t pinned_work(const LossSignature& signature) {
  std::int64_t product = 1;
  for (const auto& [axis, extent] : signature.pinned) product *= std::max<std::int64_t>(extent, 1);
  return product;
}

/// Calls `extend` with the axes of every field and output.
void for_each_axis(const LossSignature& signature, const std::function<void(Axis)>& extend) {
  for (const Field& field : signature.fields) std::ranges::for_each(field.axes, extend);
  for (const OutputField& output : signature.outputs) std::ranges::for_each(output.axes, extend);
}

/// Of the axes along which it may be long: a message has those of what it says.
std::vector<Lengths> axis_lengths(const LossSignature& signature) {
  std::vector<Axis> axes;
  for_each_axis(signature, [&](Axis axis) { axes.push_back(axis); });
  std::vector<Lengths> all;
  for (Lengths lengths : kLong) {
    if (!contains(axes, lengths.axis) || signature.pinned_extent(lengths.axis)) continue;
    const bool alone = lengths.axis == Axis::sequences && has_positions_alone(signature);
    if (alone) lengths.drawn = std::end(kTokensAlone)[-1].kind;
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

Shape draw_extents(const LossSignature& signature, Temper temper, Choices& choices) {
  Shape shape;
  const bool wide = is_wide(signature), alone = has_positions_alone(signature);
  for_each_axis(signature, [&](Axis axis) {
    if (shape[axis] >= 0) return;
    const auto pinned = signature.pinned_extent(axis);
    shape[axis] = pinned ? *pinned : draw_extent(axis, wide, alone, temper, choices);
    const auto most = signature.longest_extent(axis);
    if (most && !pinned) shape[axis] = std::min(shape[axis], *most);
  });
  return shape;
}

/// In that order.
void give_way(const LossSignature& signature, std::int64_t budget, std::span<const Axis> order,
              Shape& shape, std::int64_t least_sequences = 1, std::int64_t least_tokens = 1) {
  for (Axis axis : order) {
    if (signature.pinned_extent(axis)) continue;
    const std::int64_t least = axis == Axis::vocab       ? 2
                               : axis == Axis::sequences ? least_sequences
                               : axis == Axis::tokens    ? least_tokens
                                                         : 1;
    while (shape[axis] > least && work(shape) > budget) {
      shape[axis] = std::max(least, shape[axis] / 2);
    }
  }
}

/// Whether a case may have so many.
bool has_sequences(const LossSignature& signature, const Shape& shape, std::int64_t count) {
  if (shape[Axis::sequences] < 0 || signature.pinned_extent(Axis::sequences)) return false;
  return signature.longest_extent(Axis::sequences).value_or(count) >= count;
}

}  // namespace

std::int64_t work(const Shape& shape) {
  std::int64_t product = 1;
  for (Axis axis : kAllAxes) product *= std::max<std::int64_t>(shape[axis], 1);
  return product;
}

Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices) {
  Shape shape = draw_extents(signature, temper, choices);
  // One large case takes the time of a hundred small ones, and few faults need it.
  const bool large = temper == Temper::extreme && choices.integer(0, 15) == 0;
  // What cannot give way leaves room for a few tokens of a few sequences.
  const std::int64_t budget = std::max(large ? kLargeBudget : kBudget, 8 * pinned_work(signature));
  // The vocabulary gives way last: its odd sizes are the interesting ones. A single position shows
  // little beside, so two sequences of two tokens stay as long as anything else gives way.
  constexpr Axis kFirst[] = {Axis::tokens, Axis::sequences, Axis::hidden};
  constexpr Axis kThen[] = {Axis::tokens, Axis::sequences, Axis::vocab};
  give_way(signature, budget, kFirst, shape, 2, 2);
  give_way(signature, budget, kThen, shape);
  return shape;
}

std::vector<Tier> tiers(const LossSignature& signature) {
  std::vector<Tier> tiers;
  for (const Lengths& lengths : axis_lengths(signature)) {
    const std::int64_t most = longest(signature, lengths);
    for (std::int64_t below = lengths.often; below < most; below *= 2) {
      if (2 * below > most && most > lengths.drawn) break;  // the longest is asked by itself
      const std::int64_t last = std::min(2 * below, most), block = std::min(below / 2, kBlock);
      const Tier odd = {lengths.axis, below + 1, last - 1 + last % 2, 2};
      const Tier full = {lengths.axis, below + block, last - last % block, block};
      if (below < kThousands) tiers.push_back(odd);
      if (full.first <= full.last) tiers.push_back(full);
    }
  }
  return tiers;
}

std::vector<Tier> longest_tiers(const LossSignature& signature) {
  std::vector<Tier> tiers;
  for (const Lengths& lengths : axis_lengths(signature)) {
    const std::int64_t most = longest(signature, lengths);
    if (most > lengths.drawn) tiers.push_back({lengths.axis, most, most});
  }
  return tiers;
}

std::vector<Tier> crossed_tiers(const LossSignature& signature) {
  const auto may_be_long = [&](Axis axis) {
    return signature.has_axis(axis) && !signature.pinned_extent(axis) &&
           signature.longest_extent(axis).value_or(kSeveralBlocks) >= kSeveralBlocks;
  };
  if (!may_be_long(Axis::tokens) || !may_be_long(Axis::vocab)) return {};
  return {{Axis::tokens, kBlock + 1, kBlock + 3, 2},
          {Axis::tokens, kSeveralBlocks - 2, kSeveralBlocks, 2}};
}

Shape draw_crossed_shape(const LossSignature& signature, const Tier& tier, Choices& choices) {
  Shape shape = draw_extents(signature, Temper::plain, choices);
  shape[tier.axis] = choices.sometimes(0.5) ? tier.first : tier.last;
  if (!signature.pinned_extent(Axis::sequences)) shape[Axis::sequences] = 1;
  const bool has_list = signature.has_axis(Axis::support);
  if (tier.last < kSeveralBlocks) {
    shape[Axis::vocab] = kSeveralBlocks;
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
    if (shape[lengths.axis] > lengths.drawn) return lengths.axis;
  }
  return std::nullopt;
}

Shape draw_long_shape(const LossSignature& signature, const Tier& tier, Choices& choices,
                      std::int64_t least_sequences) {
  const Axis axis = tier.axis;
  Shape shape = draw_extents(signature, Temper::plain, choices);
  const std::int64_t steps = choices.integer(0, (tier.last - tier.first) / tier.every);
  const std::int64_t extents[] = {tier.first, tier.first + steps * tier.every, tier.last};
  shape[axis] = choices.one_of(extents);
  if (axis == Axis::support && shape[Axis::vocab] > 0) {
    shape[Axis::vocab] = std::max(shape[Axis::vocab], shape[axis]);
  }
  std::vector<Axis> order = {Axis::tokens, Axis::sequences, Axis::hidden, Axis::support,
                             Axis::vocab};
  std::erase(order, axis);
  if (axis == Axis::support) std::erase(order, Axis::vocab);
  const bool has_room = has_sequences(signature, shape, least_sequences) &&
                        least_sequences * shape[axis] * pinned_work(signature) <= kLongWork;
  const std::int64_t least = has_room ? least_sequences : 1;
  if (has_room) shape[Axis::sequences] = std::max(shape[Axis::sequences], least);
  give_way(signature, kLongBudget, order, shape, least);
  return shape;
}

}  // namespace lossgate::fuzz
