// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lossgate::reference {

/// The bytes of a base64 text (RFC 4648, padded, without line ends) that stands for exactly so
/// many; nothing where it does not. Sizes are compared before anything is allocated.
std::optional<std::vector<std::uint8_t>> read_base64(std::string_view text, std::int64_t bytes);

}  // namespace lossgate::reference
