// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lossgate::impl {

/// The text of worker.py, which is built into the program, so that any interpreter can run it.
std::string_view worker_source();

}  // namespace lossgate::impl
