// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "report/benchmark_file.h"
#include "report/record_file.h"

/// Measured speeds, damaged in any way, are read or are refused in words.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    lossgate::report::benchmarks_from_json({reinterpret_cast<const char*>(data), size},
                                           "the input");
  } catch (const lossgate::report::RecordError&) {
  }
  return 0;
}
