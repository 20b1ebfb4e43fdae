// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/page/page.h"

namespace lossgate::report {

/// No summary is longer, whatever the record holds.
inline constexpr std::size_t kLongestSummary = std::size_t{64} << 10;

/// The last run as Markdown for a CI job's summary: the verdict, what each implementation violates,
/// then the findings, those first that the run before lacks, as many as there is room for.
std::string summary(const PageSource& source);

}  // namespace lossgate::report
