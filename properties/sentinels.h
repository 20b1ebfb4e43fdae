// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/probes.h"

namespace lossgate::properties {

/// Whether a number that stands at a position that counts is taken for a mask: a 0, or a token that
/// is the label; or zeros in all of a sequence.
Opinion taken_for_mask(const Suspect& suspect, const Case& plain);

}  // namespace lossgate::properties
