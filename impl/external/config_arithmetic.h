// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <string>

#include "impl/external/declared_arithmetic.h"
#include "reference/spec/signature.h"

namespace lossgate::impl {

/// The table [subject.arithmetic] of `file`. Throws ConfigError.
DeclaredArithmetic read_arithmetic(const toml::table& table, const std::string& file,
                                   const LossSignature& loss);

}  // namespace lossgate::impl
