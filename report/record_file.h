// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "report/run_record.h"

namespace lossgate::report {

/// A record that cannot be read: what() names the file, the key and what was expected.
class RecordError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No count of a record is larger, so that no sum of some overflows.
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 48;

/// The record as JSON (SCHEMA.md), keys in a fixed order. `indent` -1 gives one line.
std::string to_json(const RunRecord& record, int indent = 1);

/// The inverse. A record of a later schema is refused, never guessed at.
RunRecord from_json(std::string_view text, std::string_view file_name);

RunRecord read_record(const std::filesystem::path& file);

}  // namespace lossgate::report
