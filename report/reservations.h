// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/run_record.h"

namespace lossgate::report {

/// What a green of each implementation does not say, for a terminal: what its contract relaxes, how
/// much no verdict came of, which parameters its file never tells it, what a share leaves to
/// others, and what its own f64 does not bear out.
std::string reservations(const RunRecord& record);

}  // namespace lossgate::report
