// SPDX-License-Identifier: Apache-2.0
// The filter in AVX-512. What other files compile as well is included before the instruction set is
// chosen, and every template behind it has this file's own lanes for its scalar: a machine without
// AVX-512 meets none of it.
#if defined(__x86_64__) && !defined(LOSSGATE_BASELINE_LANES)
#include "reference/lanes/before_instructions.h"

#define LOSSGATE_LANES 8
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl"))), \
                             apply_to = function)
#include "reference/lanes/approximate.h"

namespace lossgate::reference {

Approximator avx512_approximator(std::size_t place) { return approximator_by_lanes(place); }

}  // namespace lossgate::reference
#pragma clang attribute pop
#endif
