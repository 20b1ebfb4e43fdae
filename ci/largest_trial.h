// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "ci/brought.h"
#include "ci/proposal.h"

namespace lossgate::ci {

/// Callers who keep numbers small: the line with the largest limit under which the function holds,
/// of one field where that will do.
std::optional<Proposal> try_largest(const Brought& brought,
                                    const std::function<bool(const impl::Subject&)>& holds);

}  // namespace lossgate::ci
