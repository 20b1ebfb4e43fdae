// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "ci/campaign.h"
#include "ci/campaign_folder.h"
#include "ci/plan.h"
#include "report/run_record.h"

namespace lossgate::ci {

/// Asks the case of each finding in the record again, mended ones included, before a campaign goes
/// on and beside its budget. What fails is found afresh, with the line and the cause that it has
/// now; what holds is mended: no finding any more, and asked again the next time. Each case is the
/// first that its process asks, so what only shows after other calls holds here: a finding of that
/// cause stays, and another one is found anew by a search that meets it. Tells on standard output
/// what changed, and how many were asked.
void ask_again(const Plan& plan, const CampaignOptions& options, CampaignFolder& folder,
               report::RunRecord& record, const std::atomic<bool>& interrupted);

}  // namespace lossgate::ci
