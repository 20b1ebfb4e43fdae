// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/signature.h"

namespace lossgate {

/// Whether the field says of which of two kinds something is, and nothing of what counts.
inline bool tells_kinds(const Field& field) {
  return field.role == Role::constant && field.quantity == Quantity::mask;
}

}  // namespace lossgate
