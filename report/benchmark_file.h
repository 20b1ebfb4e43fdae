// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Measured speeds, which stand beside a record and are no part of it: another run of the same
/// request gives others.
namespace lossgate::report {

struct Benchmark {
  std::string name;
  double nanoseconds = 0.0;  ///< of the processor, for one iteration; the median of repetitions
  double items_per_second = 0.0;  ///< 0 where none were counted; bytes likewise
  double bytes_per_second = 0.0;
};

/// What Google Benchmark wrote with --benchmark_out_format=json, or ci/bench.sh made of that.
/// Throws RecordError with the place of what is wrong.
std::vector<Benchmark> benchmarks_from_json(std::string_view text, std::string_view file_name);

std::vector<Benchmark> read_benchmarks(const std::filesystem::path& file);

}  // namespace lossgate::report
