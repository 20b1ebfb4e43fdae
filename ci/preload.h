// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ci/child.h"
#include "ci/plan.h"

/// Subjects are loaded where they will be asked: what an interpreter imports takes seconds, and the
/// gate itself wants no more than what they say of themselves.
namespace lossgate::ci {

/// A worker in which the plan's subjects are loaded, and what they said in `options`. Null where
/// none takes seconds, and where the worker ended, of which whoever loads them hears as well.
/// Throws InputError where one of them cannot be loaded.
std::unique_ptr<Child> worker_that_loads(PlanOptions& options);

/// In that worker: what it was told first, if that was to load subjects, which `loaded` keeps.
bool answer_load(std::string_view line, std::vector<SubjectFile>& loaded);

}  // namespace lossgate::ci
