// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/selection.h"

namespace lossgate::ci {

/// Why the filters leave nothing to ask, and what there is: "no subject of jsd in lossgate.toml,
/// which has my_loss (dpo)".
std::string none_left(const Filters& filters, const Selection& left);

}  // namespace lossgate::ci
