// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lossgate::ci {

/// A word of the command line and, where a flag file gave it, "file:line".
struct Word {
  std::string text;
  std::string origin;
};

/// Replaces each `@FILE` by the words of that file; # starts a comment there. Throws InputError.
std::vector<Word> expanded(const std::vector<std::string>& words);

/// The whole command: reads the words after the program's name, does what they say, returns the
/// exit status. Errors are told on standard error, in one line.
int run_command(const std::vector<std::string>& words);

}  // namespace lossgate::ci
