// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/property.h"

namespace lossgate::properties {

/// The confidence from which on no other explanation is looked for.
inline constexpr double kSure = 0.9;

/// Tries what could be behind the violation (rules G1 to G3): a few dozen calls on small cases that
/// it makes. Where no experiment fits, the name that the property gave remains.
Diagnosis diagnose(CaseStudy& study, const impl::Implementation& implementation,
                   const Property& property, const Violation& violation);

/// Whether that name of a property's own, which no experiment bore out, says more than was seen, or
/// not why it was: an input that changed needs no experiment, a number that is wrong does.
bool is_open(const Property& property, std::string_view cause);

}  // namespace lossgate::properties
