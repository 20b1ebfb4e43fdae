// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/campaign.h"

namespace lossgate::ci {

struct FuzzOptions {
  PlanOptions plan;
  CampaignOptions campaign;
  std::string out = "campaign";
  std::vector<std::string> corpora;  ///< folders of cases to begin with
};

/// The verb `fuzz`: searches implementations until the budget is spent, and goes on where a
/// campaign in that folder was interrupted. Returns the exit status.
int run_fuzz(const FuzzOptions& options);

}  // namespace lossgate::ci
