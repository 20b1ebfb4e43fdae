// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "properties/property.h"

/// A coverage of numbers rather than code, so that an implementation which nobody can instrument is
/// searched towards its largest error, too.
namespace lossgate::fuzz {

/// What a feature speaks of. Each has one index and one value.
enum class Facet {
  verdict,    ///< a property: its verdict
  ratio,      ///< a property: the binary order of its worst error ratio
  headroom,   ///< an output: how far its largest peak is from the end of the compute format
  selection,  ///< an output: entries that are selected away, undecided at a kink, not finite
  masked,     ///< a field: a class of numbers behind the mask
  counted,    ///< a field: a class of numbers at positions that count
  form,       ///< mask, split, layout, upstream gradient, options, reduction: their kind
};

/// A small integer: dtype, facet, index and value.
using Feature = std::uint16_t;
inline constexpr std::size_t kFeatures = std::size_t{1} << 16;

Feature feature(Dtype dtype, Facet facet, std::size_t index, std::size_t value);

/// What the evaluation of a case showed; the outcomes are those of the properties, in their order.
/// In no order, and without repetition.
std::vector<Feature> features_of(properties::Evaluation& evaluation,
                                 const std::vector<properties::Outcome>& outcomes);

}  // namespace lossgate::fuzz
