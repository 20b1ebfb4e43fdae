// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

enum class AdvantageForm {
  per_sequence,  ///< the same for every token of a sequence, as group-relative methods give
  per_token,
  equal,       ///< one value everywhere
  zeros,       ///< zeros of both signs
  opposite,    ///< +a, -a in turn
  units,       ///< 1 and -1
  cancelling,  ///< whole numbers that sum to 0, so that the true mean is 0
  small,
  subnormal,
  large,
  largest,
};

inline constexpr AdvantageForm kAllAdvantageForms[] = {
    AdvantageForm::per_sequence, AdvantageForm::per_token, AdvantageForm::equal,
    AdvantageForm::zeros,        AdvantageForm::opposite,  AdvantageForm::units,
    AdvantageForm::cancelling,   AdvantageForm::small,     AdvantageForm::subnormal,
    AdvantageForm::large,        AdvantageForm::largest};

AdvantageForm pick_advantage_form(Temper temper, Choices& choices);

/// Advantages or rewards on any axes, always finite.
void draw_advantages(const Column& column, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
