// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "impl/external/config_reader.h"
#include "reference/spec/signature.h"

namespace lossgate::impl {

/// The key `axes`: axes with one extent. Sequences and tokens are not among them: what is asked
/// splits and pads those. Nor are bytes: a message is as long as what it says. Throws ConfigError.
std::vector<std::pair<Axis, std::int64_t>> read_axes(const Reader& reader,
                                                     const LossSignature& loss);

}  // namespace lossgate::impl
