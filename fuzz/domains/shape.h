// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "fuzz/profile.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

namespace lossgate::fuzz {

/// An extent, that which the signature pins or at least 1, for every axis that a field or output of
/// the signature has; at least 2 for the vocabulary. The largest field stays small enough for tens
/// of thousands of cases a second; rows without a valid token come from the mask, not from an
/// extent of 0.
Shape draw_shape(const LossSignature& signature, Temper temper, Choices& choices);

/// Where no list names a token twice, it is no longer than the vocabulary.
void leave_room_for_lists(const LossSignature& signature, Shape& shape);

/// What a loss has to go through: every combination of places on its axes.
std::int64_t work(const Shape& shape);

/// The same of the axes that callers have of one extent alone.
std::int64_t pinned_work(const LossSignature& signature);

/// Calls `extend` with the axes of every field and output.
void for_each_axis(const LossSignature& signature, const std::function<void(Axis)>& extend);

/// The largest extent that draw_shape draws, where nothing limits it.
std::int64_t most_drawn(const LossSignature& signature, Axis axis);

/// What draw_shape begins with, however much work it is.
Shape draw_extents(const LossSignature& signature, Temper temper, Choices& choices);

/// Halves extents in that order until the work is within the budget, or they are the least.
void give_way(const LossSignature& signature, std::int64_t budget, std::span<const Axis> order,
              Shape& shape, std::int64_t least_sequences = 1, std::int64_t least_tokens = 1);

}  // namespace lossgate::fuzz
