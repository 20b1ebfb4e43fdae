// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace lossgate::ci {

/// What the command's exit status says.
enum class Exit : int {
  green = 0,
  red = 1,           ///< something red, or a faulty implementation survived
  usage = 2,         ///< flags or input
  broken = 3,        ///< the harness or the machine failed
  interrupted = 130  ///< by Ctrl-C, as shells have it; what was found so far is written
};

/// Wrong flags or files: one line that names file, line, key and what was expected.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The harness or the machine failed, not what is under test.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lossgate::ci
