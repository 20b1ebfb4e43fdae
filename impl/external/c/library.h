// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/external/c/lossgate.h"

namespace lossgate::impl {

/// A function of a shared library that LOSSGATE_LOSS declares.
struct LibraryFunction {
  int (*call)(lossgate_call*) = nullptr;
  std::string name;
  std::string takes;
  std::string file;  ///< of its source, as its compiler called it
  int line = 0;
};

/// Opens `so:FILE:FUNCTION`; a relative path begins at the current folder. The library stays open.
/// Throws SubjectError, which says what to write instead.
LibraryFunction open_library(const std::string& entry);

}  // namespace lossgate::impl
