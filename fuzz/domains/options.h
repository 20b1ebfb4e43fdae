// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// Every option and the reduction: the default most often, else none where allowed, an end of the
/// range, a number within, or any choice or flag. Always what the signature accepts.
LossSpec draw_spec(const LossSignature& signature, Temper temper, Choices& choices);

/// The same with another value than the default for every option that has one: another flag or
/// choice, a number within its range or an end of it, now and then none where that is allowed.
LossSpec draw_other_spec(const LossSignature& signature, Choices& choices);

/// The defaults but for one option, of those that have another value: the one whose turn it is, or
/// any. What can be off is, mostly.
LossSpec draw_spec_of_one(const LossSignature& signature, std::optional<std::size_t> turn,
                          Choices& choices);

OptionValue draw_option(const Option& option, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
