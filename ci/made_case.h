// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "properties/property.h"

namespace lossgate::ci {

/// Whether the property asks one call, about a case that it makes of the given one.
bool is_of_made_case(const properties::Property& property);

/// That case, where the implementation answers it as the violation says, and the formula has there
/// what it says. Nothing where it does not show again.
std::optional<Case> made_case(const reference::Loss& loss,
                              const impl::Implementation& implementation,
                              const properties::Property& property, const Case& c,
                              const properties::Violation& violation);

}  // namespace lossgate::ci
