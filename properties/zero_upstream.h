// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "properties/evaluation.h"

namespace lossgate::properties {

/// An entry of an output: which output, and where in it.
using OutputEntry = std::pair<std::size_t, std::int64_t>;

/// The gradient entries at which an upstream gradient of 0 meets an overflow, of their own slope or
/// of a forward output at their position: 0 times infinity may make them NaN (rule C2).
std::set<OutputEntry> nan_excused(CaseStudy& study, const Arithmetic& arithmetic);

}  // namespace lossgate::properties
