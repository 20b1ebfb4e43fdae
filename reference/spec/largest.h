// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Numbers that callers keep as small as Field::largest says, of either sign: those at positions
/// that count, and all of a field that has no positions. The limit is rounded to the field's
/// format, as a caller's own clamp would be. Infinities are no numbers, and have a contract of
/// their own.
namespace lossgate {

bool numbers_are_small(const LossSignature& signature, const Case& c);

/// Makes them so: a larger one becomes the limit, of its sign.
void make_numbers_small(const LossSignature& signature, Case& c);

}  // namespace lossgate
