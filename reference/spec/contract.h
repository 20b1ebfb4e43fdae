// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate {

/// Whether the case keeps to what the signature lets callers do: what is masked and where, which
/// extents and dtypes there are, what one sequence, group or list has.
bool keeps_to_contract(const LossSignature& signature, const Case& c);

}  // namespace lossgate
