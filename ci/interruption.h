// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lossgate::ci {

/// Until a run has something to write, a Ctrl-C or a SIGTERM ends the process with status 130 and
/// one line that says so.
void tell_interruption_at_start();

}  // namespace lossgate::ci
