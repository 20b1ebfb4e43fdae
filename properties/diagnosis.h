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

}  // namespace lossgate::properties
