// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "ci/args.h"

int main(int argc, char** argv) {
  // A pipe that nobody reads and a file that may not grow are errors to be told, not deaths.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return lossgate::ci::run_command({argv + 1, argv + argc});
}
