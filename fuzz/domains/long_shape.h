// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Shapes that are as long along an axis as production's, and of each size on the way (rule E10).
namespace lossgate::fuzz {

/// Extents of one axis that a kernel may have code of its own for: the first and every so many up
/// to the last.
struct Tier {
  Axis axis;
  std::int64_t first, last, every = 1;
};

/// From there on a case takes a second and more.
inline constexpr std::int64_t kThousands = 8192;

/// What lies between the extents that draw_shape draws often and production's, from each power of
/// two to the next, or to what callers promise at most: the odd ones, which leave something over
/// whatever they are dealt to, and those that fill vectors, warps and blocks. Of thousands one
/// tier, of which a power of two or any length is drawn. Once along each axis the twice odd ones,
/// which fill pairs and no vector of four. None of an axis that the signature pins.
std::vector<Tier> tiers(const LossSignature& signature);

/// Production's lengths, each the one extent of its tier: a little beyond what blocks, tiles and
/// grids of threads end at, or what callers promise at most. None along an axis that draw_shape
/// draws as long.
std::vector<Tier> longest_tiers(const LossSignature& signature);

/// Batches whose sequences are long, lengths of a sequence for which a vocabulary, or a list of its
/// tokens, is long, too, those of a vocabulary for which a sequence is, and hidden states of a
/// layer of many tokens: what goes wrong for a block of both shows along neither alone. None where
/// either axis is pinned or shorter, or what is pinned leaves no room.
std::vector<Tier> crossed_tiers(const LossSignature& signature);

/// A shape with an extent of such a tier.
Shape draw_crossed_shape(const LossSignature& signature, const Tier& tier, Choices& choices);

/// A shape with an extent of the tier, and short along all other axes; so many sequences at least,
/// where callers have them and they leave room.
Shape draw_long_shape(const LossSignature& signature, const Tier& tier, Choices& choices,
                      std::int64_t least_sequences = 1);

/// Along which axis a shape is longer than all of draw_shape's, if it is.
std::optional<Axis> long_axis_of(const LossSignature& signature, const Shape& shape);

}  // namespace lossgate::fuzz
