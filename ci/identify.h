// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lossgate::ci {

struct IdentifyOptions {
  std::string entry;                    ///< FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION
  std::string interpreter = "python3";  ///< that has torch
  std::string out = "lossgate.toml";    ///< written where the function was recognised
  std::vector<std::string> losses;      ///< only these
  bool overwrite = false;
  bool quick = false;  ///< do not try what it keeps beyond the least that a contract says
};

/// The verb `identify`: asks the function as every loss whose fields its parameters can take, see
/// recognise(). Prints what it is or what it is nearest to, and writes a lossgate.toml. Exit status
/// 1 where it is none of the catalog's losses, and where it is one with a fault: an option in the
/// place of another, or a default of its own at which it is another formula.
int run_identify(const IdentifyOptions& options);

}  // namespace lossgate::ci
