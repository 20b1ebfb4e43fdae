// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lossgate::ci {

/// The path from the folder in which this process works: what is written down has no absolute one.
inline std::filesystem::path from_here(const std::filesystem::path& path) {
  return path.is_absolute() ? std::filesystem::proximate(path) : path.lexically_normal();
}

}  // namespace lossgate::ci
