// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reference/spec/result.h"

namespace lossgate::impl {

/// A refusal by a call that did not leave everything as it was: whoever catches what it raised goes
/// on under other settings (LossResult::changed_settings).
struct UntidyRefusal : Refusal {
  std::vector<std::string> changed_settings;
};

}  // namespace lossgate::impl
