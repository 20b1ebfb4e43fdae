// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

/// Kernels whose edges are counted (LOSSGATE_EDGES) report them to libFuzzer where that is linked,
/// whose functions then stand in the place of these, and to nobody elsewhere.
extern "C" {
[[gnu::weak]] void __sanitizer_cov_8bit_counters_init(std::uint8_t* /*begin*/,
                                                      std::uint8_t* /*end*/) {}
[[gnu::weak]] void __sanitizer_cov_pcs_init(const std::uintptr_t* /*begin*/,
                                            const std::uintptr_t* /*end*/) {}
}
