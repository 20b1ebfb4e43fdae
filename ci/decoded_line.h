// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ci/errors.h"

namespace lossgate::ci {

/// What `read` makes of the JSON of a line from another process of ours. Throws MachineError that
/// begins with `trouble` where it cannot.
template <class Read>
auto decoded(std::string_view line, std::string_view trouble, Read read) {
  try {
    return read(nlohmann::json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw MachineError(std::string(trouble) + ": " + error.what());
  }
}

}  // namespace lossgate::ci
