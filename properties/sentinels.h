// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "properties/suspect.h"

/// Numbers that are taken for a mask where they stand at positions that count.
namespace lossgate::properties {

/// The field whose 0 at a valid position does what masking the position does, if one has.
std::string field_that_masks(const Suspect& suspect, const Case& plain);

/// The label whose token, at a position that counts, does what masking the position does: of two
/// positions each.
std::optional<std::int64_t> label_that_masks(const Suspect& suspect, const Case& plain);

/// The field whose zeros in all of a sequence do what masking the sequence does, if one has.
std::string field_that_masks_sequences(const Suspect& suspect, const Case& plain);

}  // namespace lossgate::properties
