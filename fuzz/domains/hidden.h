// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

enum class HiddenForm {
  normal,
  zeros,
  rows_equal,  ///< the same state everywhere
  peaked,      ///< one large coordinate, so that its product dominates a row of logits
  offset,      ///< a large common coordinate, so that all logits are shifted
  cancelling,  ///< large coordinates of alternating sign
  large,
  subnormal,
};

inline constexpr HiddenForm kAllHiddenForms[] = {
    HiddenForm::normal, HiddenForm::zeros,      HiddenForm::rows_equal, HiddenForm::peaked,
    HiddenForm::offset, HiddenForm::cancelling, HiddenForm::large,      HiddenForm::subnormal};

HiddenForm pick_hidden_form(Temper temper, Choices& choices);

/// Hidden states, or the matrix and bias that turn them into logits; those of two models are
/// unrelated, or the same.
void draw_hidden(Columns columns, Temper temper, Choices& choices);

/// Factors of tokens or sequences, >= 0: 1, 0, anything.
void draw_weights(const Column& column, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
