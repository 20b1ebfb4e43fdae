// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ci/tasks.h"
#include "fuzz/features.h"

/// What a campaign and its workers say to each other, one line of JSON each. A worker reads the
/// plan (protocol.h) and one stint, and works until it is ended. It answers `ready` when it begins,
/// `part <record>` every now and then and with each new finding, `met <record>` before it looks
/// into one, what a part would be if time were over, `kept <kept>` for a case that shows something
/// new, `long <i>` when it begins with a long case and `long end` after the last, `turn` when it
/// has asked all that it may, and goes on when it reads how many more, `spent` where its subject
/// can be asked no more in this process, `failed <reason>` where it cannot work. What it is asking
/// stands in UnderWay. Of a case that is asked again it answers one part, and `turn`.
namespace lossgate::ci {

/// One implementation, searched by one process for some time.
struct Stint {
  std::string loss, implementation;
  std::uint64_t seed = 1;
  std::int64_t cases = 0;      ///< after so many its turn is over; 0: any
  bool by_cases = false;       ///< when it tells what hangs on cases alone, never on the clock
  std::int64_t asked = 0;      ///< cases in earlier stints
  std::int64_t long_from = 0;  ///< the first long case that is left (rule E10); -1: none is
  bool guided = true;
  std::int64_t memory_mib = 0;      ///< what the process may allocate; 0: anything
  std::vector<std::string> corpus;  ///< files of cases to begin with
  std::vector<fuzz::Feature> seen;  ///< no news
  Shown shown;                      ///< nor are these findings
  std::string again;                ///< the file of the one case that it asks; empty: it searches
};

std::string encode(const Stint& stint);
Stint decode_stint(std::string_view line);  ///< throws MachineError

/// A case that shows something new.
struct Kept {
  std::string text;
  std::vector<fuzz::Feature> features;
};

std::string encode(const Kept& kept);
Kept decode_kept(std::string_view line);  ///< throws MachineError

}  // namespace lossgate::ci
