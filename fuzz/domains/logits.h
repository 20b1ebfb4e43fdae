// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

enum class LogitForm {
  normal,
  equal,           ///< a uniform distribution
  peaked,          ///< one token, the same in every column
  nearly_equal,    ///< neighbours in the format
  offset,          ///< normal, plus a constant, of either sign, far from 0
  disjoint,        ///< every column sure of another token
  underflowing,    ///< all but one token beyond the reach of exp
  masked_columns,  ///< -inf at some tokens, the same in every column
  masked_tile,     ///< -inf at the first half, or at all but the last token
  subnormal,
  largest,  ///< the ends of the format
};

inline constexpr LogitForm kAllLogitForms[] = {
    LogitForm::normal,       LogitForm::equal,          LogitForm::peaked,
    LogitForm::nearly_equal, LogitForm::offset,         LogitForm::disjoint,
    LogitForm::underflowing, LogitForm::masked_columns, LogitForm::masked_tile,
    LogitForm::subnormal,    LogitForm::largest};

LogitForm pick_logit_form(Temper temper, Choices& choices);

/// Rows of logits over the last axis. A column whose infinity is not legal gets a large negative
/// number where another gets -inf; every row keeps a finite entry.
void draw_logits(Columns columns, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
