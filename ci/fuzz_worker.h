// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lossgate::ci {

/// The verb `fuzz-worker`: searches one implementation until it is ended (see stint.h). A process
/// of its own, for libFuzzer has one state for a process, and an implementation may crash.
int run_fuzz_worker();

}  // namespace lossgate::ci
