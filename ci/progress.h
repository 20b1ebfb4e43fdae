// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ci/live_line.h"

namespace lossgate::ci {

/// How far a run is, with rate and time left, on a live line.
class Progress {
 public:
  /// `noun` is what the cases are called; `in_a_log` is how often a line is written there.
  Progress(std::int64_t cases, std::int64_t variants, std::string noun = "cases",
           std::chrono::seconds in_a_log = std::chrono::seconds(10));

  void add_cases(std::int64_t count) { cases_done_ += count; }
  void add_variant() { variants_done_ += 1; }
  /// So many workers are at that, right now, and end no case.
  void looks_into(std::int64_t findings) { findings_ = findings; }
  void show();    ///< when it is time
  void finish();  ///< a log that was told of the way is told of its end

 private:
  using Clock = std::chrono::steady_clock;
  std::string text() const;

  std::int64_t cases_, variants_, cases_done_ = 0, variants_done_ = 0, findings_ = 0;
  std::string noun_;
  Clock::time_point start_ = Clock::now();
  LiveLine line_;
};

/// "4:05", "1:02:03".
std::string duration_text(double seconds);

}  // namespace lossgate::ci
