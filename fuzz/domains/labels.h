// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// Indices on the vocabulary axis, all in range. `logits`, where not null, has one row per label:
/// labels are likely at its peak and rarely at an entry of -inf. On a support axis the labels of
/// one row differ where the vocabulary allows it; now and then one repeats the first.
void draw_labels(const Column& column, std::int64_t vocab, const Tensor* logits, Temper temper,
                 Choices& choices);

}  // namespace lossgate::fuzz
