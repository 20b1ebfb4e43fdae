// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Ways to make a field of messages invalid (their format is in reference/teacher_message.h): what
/// is said stays what it was but for one thing. False where no message has such a thing; `pick`
/// decides which of those that have one.
namespace lossgate::properties {

/// An optional array that the other messages have.
bool drop_array(const LossSignature& signature, Case& c, std::uint64_t pick);
/// A sequence that ends where its prompt does.
bool drop_completion(const LossSignature& signature, Case& c, std::uint64_t pick);
/// NaN in place of a log-prob.
bool put_nan(const LossSignature& signature, Case& c, std::uint64_t pick);
/// One token id fewer than log-probs.
bool shorten_list(const LossSignature& signature, Case& c, std::uint64_t pick);
/// Base64 without its last group.
bool cut_text(const LossSignature& signature, Case& c, std::uint64_t pick);

}  // namespace lossgate::properties
