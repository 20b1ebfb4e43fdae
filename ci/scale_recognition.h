// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/interview.h"

namespace lossgate::ci {

/// The power of the option's value that the factor is, or 0.
int power_of(double factor, const OptionValue& value);

/// The option by whose square the answers are the formula's, as distillation has that of its
/// temperature by convention; empty where there is none. Told 1 alone it looks like an option that
/// is right there only, so it stays among those that are told freely.
std::string free_scale(Function& function, Interview& interview);

}  // namespace lossgate::ci
