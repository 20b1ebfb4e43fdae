// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/run_record.h"

namespace lossgate::ci {

/// What verdicts may depend on, read now. Opens the LibTorch library, since loading one may change
/// how the processor rounds; of what a user brings it is not asked, and takes most of a second.
report::Environment read_environment(bool with_torch = true);

/// Throws MachineError where no error bound would hold.
void check_environment(bool with_torch = true);

std::string version();
std::string commit();  ///< of the source tree when it was configured, or "unknown"

}  // namespace lossgate::ci
