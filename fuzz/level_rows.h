// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// Gives each sequence of a field that has one value for each the value of its first position that
/// counts, makes groups even, lists distinct and numbers small and moves what counts first where
/// the caller has them so.
void level_rows(const LossSignature& signature, std::span<const std::uint8_t> valid, Case& c);

/// The same, where what counts follows from the case; and makes the parts of its split even.
void level_rows(const LossSignature& signature, Case& c);

}  // namespace lossgate::fuzz
