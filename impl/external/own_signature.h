// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "impl/external/config.h"

namespace lossgate::impl {

/// The signature of a loss that is not in the catalog: fields, options and outputs, without a
/// formula. `file` is how messages call it, `find` knows the ids that are taken. Throws
/// ConfigError.
///
///   id = "dpo"
///   [[field]]
///   name = "log_prob"
///   role = "differentiable"          # constant, label, mask
///   quantity = "log_prob"            # what is drawn: advantage, logit, hidden_state, ...
///   axes = ["sequences", "tokens"]
///
/// impl/external/README.md lists the other keys.
LossSignature parse_signature(std::string_view text, const std::string& file, FindSignature find);

}  // namespace lossgate::impl
