// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

enum class GroupForm {
  one,     ///< all sequences in one group
  blocks,  ///< runs of equal length, the last one shorter where it does not divide
  singletons,
  uneven,     ///< runs of any length
  scattered,  ///< members not next to each other
};

inline constexpr GroupForm kAllGroupForms[] = {GroupForm::one, GroupForm::blocks,
                                               GroupForm::singletons, GroupForm::uneven,
                                               GroupForm::scattered};

GroupForm pick_group_form(Temper temper, Choices& choices);

/// Group numbers, from 0 or from anywhere, in steps of any size, as `Numbering` draws them. Where
/// they are compared, and none is a result, long ones may be any that an f64 holds.
void draw_groups(Columns columns, bool are_compared, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
