// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "corpora/dump.h"

namespace lossgate::ci {

/// What came out of the loss where the dump was taken.
std::string observed_text(const corpora::Dump& dump);

/// When and on what that was.
std::string run_text(const corpora::Dump& dump);

}  // namespace lossgate::ci
