// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lossgate::regressions {

/// A regression's word that an implementation violates a property on its case.
struct Expectation {
  std::string implementation;
  std::string property;
  bool operator==(const Expectation&) const = default;
};

/// Reads the `expect` line of a case: `implementation:property` pairs, set apart by commas or
/// blanks. Throws std::invalid_argument that says what was expected.
std::vector<Expectation> parse_expectations(std::string_view text);

}  // namespace lossgate::regressions
