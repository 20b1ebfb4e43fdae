// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>

#include "ci/tasks.h"

namespace lossgate::ci {

/// Tries a faulty implementation on hostile draws until every property that its fault names has
/// been violated, each judged without precedence (rule E2): one row of the kill matrix per
/// property.
report::RunRecord run_variant(const Plan& plan, const Task& task, const Announce& announce);

/// The same implementation, except that what it throws is told apart from what the harness throws,
/// and that `before` hears of each call.
impl::Implementation guarded(const impl::Implementation& implementation,
                             std::function<void()> before = {});

/// What came out of the implementation under test.
struct ImplementationThrew : std::runtime_error {
  ImplementationThrew(const std::string& what, const char* violated)
      : std::runtime_error(what), property(violated) {}
  const char* property;  ///< of the run, which it violates
};

/// A brought subject that crashed or hung so often before that this call was not made.
struct ImplementationWornOut : ImplementationThrew {
  using ImplementationThrew::ImplementationThrew;
};

}  // namespace lossgate::ci
