// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "ci/evidence/kind.h"

namespace lossgate::ci::evidence {

/// What a kind of evidence has counted so far, in FOLDER/KIND.json: each unit is kept seconds after
/// it is done, and is not done again unless commit, seed or effort are others.
class Record {
 public:
  Record(const std::filesystem::path& folder, const Kind& kind, const Effort& effort,
         const std::string& command);

  bool has(const std::string& unit) const { return content_["units"].contains(unit); }
  void add(const std::string& unit, nlohmann::json counted, double seconds);

  /// Keeps all units now: a record may be of many megabytes, too long to write after each.
  void keep();

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path file_;
  Clock::time_point kept_ = Clock::now();
  Clock::duration keeping_ = {};  ///< how long that took
  nlohmann::json content_;
};

/// Runs what the record lacks, on so many threads; the order in which units end leaves no trace.
void run_kind(const Kind& kind, const Effort& effort, int jobs, Record& record);

}  // namespace lossgate::ci::evidence
