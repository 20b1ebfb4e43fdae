// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/run_record.h"

namespace lossgate::ci {

/// Says at each finding of a subject that was asked on several devices how the others did in the
/// same cases: "on cpu it holds", "on cpu the same".
void compare_devices(report::RunRecord& record);

}  // namespace lossgate::ci
