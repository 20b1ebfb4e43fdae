// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

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

/// Those of the plan: sound implementations, brought subjects, and faulty ones that are named.
std::vector<Arm> arms_of(const Plan& plan);

}  // namespace lossgate::ci
