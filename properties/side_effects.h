// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "properties/verdict.h"
#include "reference/spec/result.h"

namespace lossgate::properties {

/// What a call did beside its answer (rule E4): an input that it changed, or a setting.
std::optional<Violation> side_effect(const LossResult& result);

}  // namespace lossgate::properties
