// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/run_record.h"

namespace lossgate::report {

/// The record as JUnit XML: a suite per implementation with a case per property, one suite for the
/// faulty variants and one for the regressions' expectations. Red findings are failures, named by
/// their fingerprints; a property that never applied is skipped, and so are a stored case that fits
/// no subject and a waiver or an entry of the baseline that no finding needs.
std::string junit(const RunRecord& record);

/// Text made fit for XML 1.0, line by line: special characters escaped, others than XML may hold
/// written by number.
std::string xml_escaped(std::string_view text);

}  // namespace lossgate::report
