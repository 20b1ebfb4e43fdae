// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/result.h"

/// What our sound implementations refuse, told by the signature alone (rule C7). Each function
/// throws a Refusal that names the argument and, where it is one place, the sequence and the token.
/// Nothing is read through an argument before it was checked.
namespace lossgate::impl {

/// The loss reduces per-token terms in the way asked for.
void check_reduction(const LossSignature& signature, const Case& c);

/// Every option of the signature is given, and in its range; no other option is.
void check_options(const LossSignature& signature, const Case& c);

/// Every field of the signature is there with a dtype that it may have and its exact shape; no
/// other field is. Fields of free floating-point dtype share one, wide ones beside 16 bits aside.
void check_fields(const LossSignature& signature, const Case& c);

/// Masks are 0 or 1; labels at valid positions lie on the vocab axis; no infinity stands at a valid
/// position of a field that refuses them. The fields must have been checked.
void check_values(const LossSignature& signature, const Case& c);

/// The split deals every sequence exactly once, to ranks that exist.
void check_split(const LossSignature& signature, const Case& c);

/// All of the above.
void require_valid(const LossSignature& signature, const Case& c);

}  // namespace lossgate::impl
