// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/run_record.h"

namespace lossgate::report {

/// The findings as SARIF 2.1.0: a rule per property, a result per finding with its fingerprint and
/// the line of the loss under test; what is known or waived is suppressed.
std::string sarif(const RunRecord& record);

}  // namespace lossgate::report
