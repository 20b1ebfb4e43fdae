// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/validate.h"

namespace lossgate::impl {

/// require_valid for sparse_jsd, but where beta > 0 what the teacher says must be finite at every
/// position that counts; where beta = 0 a missing token is -infinity.
void require_valid_sparse_jsd(const LossSignature& signature, const Case& c);

}  // namespace lossgate::impl
