// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// What an option has in a case, and what else it may have.
namespace lossgate::properties {

/// Its number; nothing where it has none.
const double* number_of(const LossSpec& spec, const Option& option);

/// What it may have been taken for.
std::vector<OptionValue> other_values(const LossSignature& signature, const LossSpec& spec,
                                      const Option& option);

/// The case with that value of the option, and of whatever follows it.
Case with_value(const LossSignature& signature, Case c, const Option& option,
                const OptionValue& value);

}  // namespace lossgate::properties
