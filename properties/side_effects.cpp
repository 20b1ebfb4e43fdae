// SPDX-License-Identifier: Apache-2.0
#include "properties/side_effects.h"

#include <cmath>

namespace lossgate::properties {

std::optional<Violation> side_effect(const LossResult& result) {
  if (!result.mutated.empty()) {
    return Violation{.place = {.output = result.mutated.front()},
                     .error_ratio = HUGE_VAL,
                     .detail = "the call changed its input " + result.mutated.front(),
                     .cause = "input overwritten"};
  }
  if (!result.changed_settings.empty()) {
    return Violation{.place = {},
                     .error_ratio = HUGE_VAL,
                     .detail = result.changed_settings.front() +
                               (result.refusal ? " after a call that refuses" : " afterwards") +
                               ", and was not before",
                     .cause = "setting left changed"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
