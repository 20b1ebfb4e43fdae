// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

/// Leaving out of a list what something does not hang on, in few tries.
namespace lossgate::fuzz {

/// Indices of a list, ascending: those that are left.
using Kept = std::vector<std::int64_t>;

/// Whether what is left will do. It is then what is left.
using Suffices = std::function<bool(const Kept&)>;

/// So many tries in a row that leave out nothing, at one size of chunks, end drop_chunks.
inline constexpr int kMostMisses = 64;

/// Keeps ever shorter parts of the list, from its front or its end: exactly as many as it takes
/// where that is a question of how many, or of a stretch, after at most 4 log2(n) + 2 misses. Sizes
/// are powers of two, so that what hangs on a remainder of one keeps it, and halves of the list, so
/// that groups of three stay whole.
void drop_ends(Kept& kept, const Suffices& suffices);

/// All of the list, then halves, quarters and so on to single indices, each chunk once at each
/// size. Of up to kMostMisses indices none can be left out afterwards but for what that set free.
/// Where nothing can be left out, 150 tries find that of a list of any length.
void drop_chunks(Kept& kept, const Suffices& suffices);

/// Of the first those that the second, a part of it, has not.
Kept without(const Kept& all, const Kept& some);

}  // namespace lossgate::fuzz
