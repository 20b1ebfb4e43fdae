// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace lossgate::impl {

/// A module of the Python worker, which is built into the program, so that any interpreter can run
/// it.
struct PythonModule {
  std::string_view name, text;
};

/// What `python -c` is given: boot.py, which reads the modules from its standard input.
std::string_view worker_boot();

std::span<const PythonModule> worker_modules();

}  // namespace lossgate::impl
