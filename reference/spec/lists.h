// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Lists of tokens, one at each position, as topk gives them (Field::distinct): none is in it
/// twice.
namespace lossgate {

/// Whether the field names tokens, several at each position.
bool is_list(const Field& field);

/// Whether a list may be as long as the shape says: there are so many tokens.
bool has_room_for_lists(const LossSignature& signature, const Shape& shape);

/// Whether no token is twice in a list, where the field says so and the position counts.
bool lists_are_distinct(const LossSignature& signature, const Case& c);

/// Makes them so: a token that is in the list already becomes the next that is not.
void make_lists_distinct(const LossSignature& signature, Case& c);

}  // namespace lossgate
