// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/plan.h"
#include "ci/worker_pool.h"
#include "report/run_record.h"

namespace lossgate::ci {

struct GateOptions {
  PlanOptions plan;
  PoolOptions pool;
  std::string out = "run";
  properties::Grade fail_on = properties::Grade::rare;
  std::string waivers, baseline;  ///< files; empty: none
};

/// The verb `gate`: cases x implementations x properties, judged; writes run.json, its
/// views and the cases of findings to `out`, shows the board. Returns the exit status.
int run_gate(const GateOptions& options);

}  // namespace lossgate::ci
