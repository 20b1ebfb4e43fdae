// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fuzz/case_seed.h"
#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// A case that the signature accepts, made of every axis's interesting values: labels in range,
/// log-probs <= 0 and no NaN at valid positions; at masked ones anything. An infinity stands at a
/// valid position only where the field declares it legal.
Case draw_case(const LossSignature& signature, Dtype dtype, Profile profile, Choices& choices);

/// What a case takes from the one it is like: options, shape and dtypes, and with `positions` also
/// which positions count.
enum class Keep { frame, positions };

/// Such a case with everything else drawn anew, and behind the mask as in a case of another profile
/// where one is given. Of the fields of `like` that do not have its shape only the dtype is looked
/// at.
Case draw_like(const LossSignature& signature, const Case& like, Keep keep, Profile profile,
               Choices& choices, std::optional<Profile> behind_mask = std::nullopt);

}  // namespace lossgate::fuzz
