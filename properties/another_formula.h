// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "properties/property.h"

namespace lossgate::properties {

/// Rule E7: whether the implementation gives another loss than the formula's on most of these cases
/// by more than any rounding explains. They should be benign, and in the widest format that the
/// implementation takes; those that it does not compute are left out.
bool computes_another_formula(const reference::Loss& loss,
                              const impl::Implementation& implementation,
                              const std::vector<Case>& benign);

/// Whether a violation says no more of such an implementation than that its formula is another.
bool hangs_on_formula(const Property& property, const Violation& violation);

/// Gives a disagreement of such an implementation its one name, whatever the options and the place.
void name_another_formula(Finding& finding, Reduction reduction);

}  // namespace lossgate::properties
