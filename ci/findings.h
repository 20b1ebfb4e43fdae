// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ci/plan.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// What a stored case of a finding says that it was found by.
inline constexpr const char* kFoundByGate = "lossgate gate";

/// Where a number that is not finite begins on the undivided case, if somebody can look inside.
std::optional<impl::Origin> origin_of(const impl::Implementation& implementation,
                                      const LossSignature& signature, Case c, double actual);

/// A finding with all that is needed to show and to replay it.
report::RecordedFinding recorded(const properties::Finding& finding,
                                 const impl::Implementation& implementation,
                                 const PlannedCase& planned, std::int64_t ordinal);

/// The case before anybody has made it simple, which its story says.
PlannedCase as_met(PlannedCase planned);

/// The same of a finding that is still to be looked into, by what is known without another call.
report::RecordedFinding recorded_as_met(properties::Finding finding,
                                        const impl::Implementation& implementation,
                                        const PlannedCase& planned, std::int64_t ordinal);

/// The same of a finding that nobody is to look into.
report::RecordedFinding recorded_without_cause(properties::Finding finding,
                                               const impl::Implementation& implementation,
                                               const PlannedCase& planned, std::int64_t ordinal);

/// A finding that is only counted: one like it was shown on a case with a lower number.
report::RecordedFinding counted(const properties::Finding& finding, std::int64_t ordinal);

/// What a failed call is told apart by, of all that is said of how it failed: "killed by signal 11
/// (Segmentation fault)", "threw".
std::string cause_of_failure(const std::string& how);

/// The fingerprint of such a finding.
std::string failure_fingerprint(const std::string& loss, const std::string& implementation,
                                const std::string& property, const std::string& how);

/// A finding that has no value to show: the call itself failed.
report::RecordedFinding recorded_failure(const PlannedCase& planned, std::int64_t ordinal,
                                         const impl::Implementation& implementation,
                                         const std::string& property, const std::string& cause);

}  // namespace lossgate::ci
