// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/long_case.h"

namespace lossgate::fuzz {

/// The first, the last, where blocks begin and, as far from the end, where what they leave over
/// does, and some others: what is lost there is no small part.
std::vector<std::uint8_t> draw_few(std::int64_t count, int others, Choices& choices);

/// Which positions of a frame count, 1 or 0: of thousands not all, but of a whole one; a few of a
/// thin one; of a padded one, and of one that is long along its tokens and has another option, all
/// but the padding of each sequence before the last, one of which may be empty. The last position
/// always does, if need be with all of its sequence.
std::vector<std::uint8_t> draw_long_mask(const LossSignature& signature, const Case& frame,
                                         const Length& length, Choices& choices);

/// Whether sequences of such a case are padded.
bool is_padded(const Length& length);

}  // namespace lossgate::fuzz
