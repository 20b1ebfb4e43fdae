// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lossgate::ci {

struct InitOptions {
  std::string loss;
  std::string folder = ".";
};

/// The verb `init`: writes a lossgate.toml and a Python file with a function to fill in. Nothing
/// that is there is overwritten.
int run_init(const InitOptions& options);

}  // namespace lossgate::ci
