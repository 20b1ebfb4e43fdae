// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "properties/agreement.h"

/// Verdicts that double decides (rule B9).
namespace lossgate::properties {

/// The outcome of a comparison in which every entry surely holds, its worst ratio an upper
/// estimate. Nothing where an entry is violated or may be, or where what is counted beside it is
/// not sure.
std::optional<Outcome> compare_filtered(const Comparison& comparison);

/// Whether the whole case surely has an entry that must be finite, of those that may be asked.
bool surely_must_be_finite(CaseStudy& study, const Arithmetic& arithmetic,
                           const std::function<bool(const OutputInfo&)>& asked);

}  // namespace lossgate::properties
