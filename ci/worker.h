// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lossgate::ci {

/// The verb `worker`: does tasks until its standard input ends (see protocol.h). A process of its
/// own, so that an implementation that crashes or hangs takes nothing with it.
int run_worker();

}  // namespace lossgate::ci
