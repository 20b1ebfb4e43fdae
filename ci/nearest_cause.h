// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ci/brought.h"
#include "ci/identify.h"
#include "ci/recognition.h"
#include "properties/verdict.h"

namespace lossgate::ci {

/// What a gate would call the fault of a function that is no loss, declared as the one that it is
/// nearest to: "mean of means", since "groups of tokens are averaged one by one". Nothing where no
/// experiment tells, or it cannot be declared so.
std::optional<properties::Diagnosis> cause_of_nearest(const IdentifyOptions& options,
                                                      const Recognition& nearest,
                                                      const Hosts& hosts);

}  // namespace lossgate::ci
