// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

enum class RewardForm {
  spread,    ///< as a reward model gives them
  verdicts,  ///< 0 or 1
  signs,     ///< -1 or 1
  equal,     ///< one value everywhere
  lonely,    ///< one apart from all others, which are equal
  close,     ///< apart by some of their last bits, or by more
  zeros,     ///< zeros of both signs
  subnormal,
  large,
  largest,
};

inline constexpr RewardForm kAllRewardForms[] = {
    RewardForm::spread, RewardForm::verdicts, RewardForm::signs, RewardForm::equal,
    RewardForm::lonely, RewardForm::close,    RewardForm::zeros, RewardForm::subnormal,
    RewardForm::large,  RewardForm::largest};

RewardForm pick_reward_form(Temper temper, Choices& choices);

/// Rewards on any axes, always finite: of one form, of one for each sequence, or where these have
/// one each of one for a few neighbours; now and then all of them far from 0.
void draw_rewards(const Column& column, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
