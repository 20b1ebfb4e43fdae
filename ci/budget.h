// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lossgate::ci {

/// How much a campaign may spend, before and after it was interrupted together, or from now on.
struct Budget {
  double seconds = 0.0;    ///< 0: any
  std::int64_t cases = 0;  ///< 0: any
  bool from_now = false;   ///< beside what was spent before

  /// The same for a campaign that has spent this, with nothing that counts from now.
  Budget after(double seconds_spent, std::int64_t cases_spent) const {
    if (!from_now) return *this;
    return {.seconds = seconds > 0.0 ? seconds + seconds_spent : 0.0,
            .cases = cases > 0 ? cases + cases_spent : 0};
  }

  bool spent(double seconds_spent, std::int64_t cases_spent) const {
    return (seconds > 0.0 && seconds_spent >= seconds) || (cases > 0 && cases_spent >= cases);
  }
};

/// "8h", "20m", "90s", "200000 cases"; "+8h" counts from now. Throws InputError.
Budget parse_budget(std::string_view text);

/// "8:00:00", "200000 cases".
std::string budget_text(const Budget& budget);

/// One machine's share of a campaign: the i-th of n, from 1.
struct Shard {
  std::int64_t index = 1, count = 1;
};

/// "2/5". Throws InputError.
Shard parse_shard(std::string_view text);

}  // namespace lossgate::ci
