// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ci/brought.h"
#include "ci/identify.h"
#include "ci/recognition.h"

namespace lossgate::ci {

/// Of what is as good on plain cases, what least fails of is taken on cases such as a gate draws;
/// the plainest, where several do. A remark says what was told apart, and what was not.
Recognition settled_by_drawn_cases(const IdentifyOptions& options, Recognition match,
                                   const Hosts& hosts);

}  // namespace lossgate::ci
