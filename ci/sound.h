// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ci/tasks.h"

namespace lossgate::ci {

/// Asks the sound implementations on the task's cases and enters what they say.
report::RunRecord run_sound(const Plan& plan, const Task& task, Shown& shown, BenignCases& benign,
                            const Announce& announce, const Met& met);

}  // namespace lossgate::ci
