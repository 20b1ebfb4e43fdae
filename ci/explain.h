// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lossgate::ci {

struct ExplainOptions {
  std::string file;
  std::string function;              ///< FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION
  std::string interpreter;           ///< that has torch, for the function; empty: python3
  std::string device;                ///< for the function; empty: cpu
  std::vector<std::string> configs;  ///< lossgate.toml files, in place of a function
  std::string implementation;        ///< one of their subjects
};

/// The verb `explain`: whether the loss is to blame for what a training run died of, and where.
/// Exit status 1 where it is.
int run_explain(const ExplainOptions& options);

}  // namespace lossgate::ci
