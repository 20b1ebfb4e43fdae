// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/selection.h"

namespace lossgate::ci {

/// Files to write of a failure, none where empty.
struct EmitOptions {
  std::string test, script, issue;
  bool overwrite = false;

  bool any() const { return !test.empty() || !script.empty() || !issue.empty(); }
};

/// Whether they can be written, as check_target has it; not there yet, unless said.
void check_targets(const EmitOptions& options);

/// Makes the case of the first failure minimal, and writes what shows it without lossgate. Throws
/// InputError where nothing fails, or where no Python function does.
void emit(const EmitOptions& options, const Selection& selection, const Case& c);

}  // namespace lossgate::ci
