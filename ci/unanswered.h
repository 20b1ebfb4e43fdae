// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ci/plan.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// Makes a trouble of each brought subject that was asked and answered no case, such as a function
/// that is not written yet, or one whose contract rules all of them out: nothing was shown of it,
/// and nobody should take that for a green.
void add_unanswered(const Plan& plan, report::RunRecord& record);

}  // namespace lossgate::ci
