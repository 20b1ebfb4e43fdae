// SPDX-License-Identifier: Apache-2.0
#include "regressions/expectation.h"

#include <stdexcept>

namespace lossgate::regressions {

std::vector<Expectation> parse_expectations(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\n";
  std::vector<Expectation> pairs;
  for (std::size_t at = text.find_first_not_of(kBetween); at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view pair = text.substr(at, end - at);
    const std::size_t colon = pair.find(':');
    if (colon == 0 || colon >= pair.size() - 1) {
      throw std::invalid_argument("expected implementation:property, not '" + std::string(pair) +
                                  "'");
    }
    pairs.push_back({std::string(pair.substr(0, colon)), std::string(pair.substr(colon + 1))});
    at = text.find_first_not_of(kBetween, end);
  }
  return pairs;
}

}  // namespace lossgate::regressions
