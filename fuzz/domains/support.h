// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// How the probabilities of one row lie on its last axis; what they lack to 1 is the tail.
enum class SupportForm {
  spread,      ///< a half, a quarter, ... in any order, and a tail
  small,       ///< nearly everything is in the tail
  tiny_tail,   ///< one entry is nearly certain; the tail is a power of two down to underflow
  no_tail,     ///< one entry is certain, the others as good as impossible
  saturated,   ///< one entry is rounded to certain, others are left: together more than 1
  impossible,  ///< some entries are -inf, where that is legal
};

inline constexpr SupportForm kAllSupportForms[] = {SupportForm::spread,    SupportForm::small,
                                                   SupportForm::tiny_tail, SupportForm::no_tail,
                                                   SupportForm::saturated, SupportForm::impossible};

SupportForm pick_support_form(Temper temper, Choices& choices);

/// Log-probs over the last axis of several policies' rows. Each row's stored probabilities sum to
/// at most 1, but for what a saturated one has beside its certain entry. Rows of two policies are
/// equal, close or unrelated.
void draw_support(Columns columns, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
