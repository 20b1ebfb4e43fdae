// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "ci/campaign.h"
#include "ci/child.h"
#include "ci/under_way.h"

namespace lossgate::ci {

/// A stretch of time, in seconds, is long beside what it takes to start a process.
inline constexpr double kLeastStretch = 1.0, kStretchPerStart = 5.0;

inline double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One of a campaign's processes.
struct Campaign::Worker {
  std::unique_ptr<Child> child;
  UnderWay under_way;
  std::size_t arm = 0;
  bool ready = false, asks_long = false;
  bool turn_over = false;                 ///< it waits to be told to go on
  bool first = false;                     ///< a short turn, since others wait for theirs
  std::optional<std::int64_t> long_case;  ///< it is not called away from one
  Clock::time_point started, stretch_began;
  std::optional<report::RunRecord> met;  ///< what no part has told of, as it was met
  double seconds_to_start = 0.0, stretch = kLeastStretch;
  double cases = 0.0, found = 0.0;  ///< in this stretch
  std::int64_t cases_left = 0;      ///< of its share; 0: any
  std::int64_t unsaved_cases = 0;   ///< since the journal was told
  Clock::time_point unsaved_since;
};

}  // namespace lossgate::ci
