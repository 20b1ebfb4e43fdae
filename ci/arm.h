// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ci/budget.h"
#include "ci/plan.h"

namespace lossgate::ci {

/// One implementation that a campaign searches.
struct Arm {
  const reference::Loss* loss = nullptr;
  const impl::Implementation* declared = nullptr;
  const impl::Implementation* only = nullptr;  ///< the same, where it is a brought subject
  const impl::Implementation* twin = nullptr;  ///< of a faulty one
  std::vector<Dtype> dtypes;

  std::string name() const { return loss->signature.id + "/" + declared->name; }  ///< unique
};

/// A case of its loss that a worker wrote. Throws MachineError.
Case decode_case(const Arm& arm, const std::string& text);

/// A case of a campaign, which asks the arm about it.
PlannedCase planned_for(const Arm& arm, Case c);

/// The long cases of the arm (rule E10), by number; none after the last.
std::optional<PlannedCase> long_case(const Plan& plan, const Arm& arm, std::int64_t number);

/// Those of the plan: sound implementations, brought subjects, and faulty ones that are named.
std::vector<Arm> arms_of(const Plan& plan);

/// Those that a machine's share leaves; where there are fewer than machines, several have the same.
std::vector<Arm> dealt(std::vector<Arm> all, const Shard& shard);

}  // namespace lossgate::ci
