// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ci/plan.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// The record of a run before its first case: what was asked for, where, of which subjects.
report::RunRecord begun_record(const Plan& plan, properties::Grade fail_on);

}  // namespace lossgate::ci
