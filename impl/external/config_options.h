// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/external/config_reader.h"
#include "impl/external/subject.h"
#include "reference/spec/signature.h"

namespace lossgate::impl {

/// The table `options`: values that pin options of the loss. Throws ConfigError.
void read_options(const Reader& reader, const LossSignature& loss, Subject& subject);

/// `scale = "temperature^2"`: what the function returns is that times the formula. Throws
/// ConfigError.
void read_scale(const Reader& reader, const LossSignature& loss, Subject& subject);

}  // namespace lossgate::impl
