// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// One step from a case to a case nearby.
enum class Mutation {
  value,         ///< one number moves to a neighbour, an edge, its negative, ...
  data,          ///< one quantity is drawn anew: everywhere, in one sequence, at one position
  sentinels,     ///< what stands behind the mask
  positions,     ///< the mask; what counts before and after keeps its values
  option,        ///< one option, or the reduction
  shape,         ///< one axis becomes longer or shorter; what is on both keeps its values
  sequence,      ///< one sequence becomes a copy of another
  equal,         ///< two fields of one quantity become equal, as on-policy data are
  surroundings,  ///< split, layout and upstream gradient
};

inline constexpr Mutation kAllMutations[] = {
    Mutation::value,     Mutation::data,   Mutation::sentinels,
    Mutation::positions, Mutation::option, Mutation::shape,
    Mutation::sequence,  Mutation::equal,  Mutation::surroundings};

/// The case after one mutation: a case that the signature accepts, if this one is (draw_case.h).
/// Where the mutation does not apply it is the case itself. A benign profile moves numbers to
/// random bits instead of the edges of formulas and formats.
Case mutated(Mutation mutation, const LossSignature& signature, Profile profile, const Case& c,
             Choices& choices);

/// After some mutation, small steps most often.
Case mutated(const LossSignature& signature, Profile profile, const Case& c, Choices& choices);

}  // namespace lossgate::fuzz
