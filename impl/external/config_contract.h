// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/external/config_reader.h"
#include "impl/external/subject.h"

namespace lossgate::impl {

/// [subject.contract]: what callers do and what the function promises beyond the formula. Throws
/// ConfigError, which says where.
void read_contract(const toml::table& table, const std::string& file, const LossSignature& loss,
                   Subject& subject);

}  // namespace lossgate::impl
