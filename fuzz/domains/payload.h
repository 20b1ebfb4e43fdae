// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// The bytes of messages. The one place to teach the draw about a message format: the columns are
/// all payload fields of the case, drawn before any other field.
void draw_payload(Columns columns, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
