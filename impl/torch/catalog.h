// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

Implementation grpo_implementation();

}  // namespace lossgate::impl

/// What the program looks up after opening this library. Sets LibTorch to one thread: work is
/// spread over processes, and a sum has one order.
extern "C" void lossgate_register(std::vector<lossgate::impl::Implementation>* implementations);
