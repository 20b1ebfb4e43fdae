// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "properties/property.h"

namespace lossgate::properties {

/// The output, and whether the position counts: "gradient.log_prob@masked".
std::string kind_of_place(const Place& place);

/// All that the implementation violates on the case, precedence (rule E2) aside, and where a
/// transform is violated whether what it makes is finite and the formula: property, cause and kind
/// of place of each, set apart by bars.
std::vector<std::string> symptoms_on(CaseStudy& study, const impl::Implementation& implementation,
                                     const std::vector<const Property*>& properties);

}  // namespace lossgate::properties
