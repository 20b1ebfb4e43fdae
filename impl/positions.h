// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reference/spec/case.h"

namespace lossgate::impl {

/// Which positions of a batch count in the loss, and how many: integers, so no format can round
/// them. A position counts where the mask is not 0 and the label is not kIgnoreLabel.
struct Positions {
  std::vector<std::uint8_t> valid;       ///< [sequences, tokens]
  std::vector<std::int64_t> row_tokens;  ///< valid positions of each sequence
  std::int64_t tokens = 0;               ///< valid positions
  std::int64_t sequences = 0;            ///< sequences with a valid position
};

/// The mask and label fields must have their shapes.
Positions find_positions(const LossSignature& signature, const Case& c);

}  // namespace lossgate::impl
