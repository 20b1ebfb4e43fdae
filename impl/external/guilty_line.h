// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "corpora/safetensors.h"
#include "impl/implementation.h"

namespace lossgate::impl {

/// The line in which the first non-finite number of a step begins.
struct GuiltyLine {
  Source source;
  std::string code, operation, text;
  bool backward = false;
  std::vector<std::int64_t> element;  ///< where that number is in what the operation made
};

/// What the answer to a step says of it (see PROTOCOL.md). Throws nlohmann::json::exception where
/// it is not understood.
std::optional<GuiltyLine> guilty_of(const corpora::TensorFile& answer);

}  // namespace lossgate::impl
