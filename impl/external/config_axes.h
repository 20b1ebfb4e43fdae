// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "impl/external/config_reader.h"
#include "reference/spec/signature.h"

namespace lossgate::impl {

using Extents = std::vector<std::pair<Axis, std::int64_t>>;

/// The key `longest`: axes that callers promise to keep as short. Throws ConfigError.
Extents read_longest(const Reader& reader, const LossSignature& loss);

/// The key `axes`: axes with one extent. Sequences and tokens are not among them: what is asked
/// splits and pads those. Nor are bytes: a message is as long as what it says. Throws ConfigError.
Extents read_axes(const Reader& reader, const LossSignature& loss);

}  // namespace lossgate::impl
