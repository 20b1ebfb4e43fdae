// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The one list of what a finding may be called. A cause is a thing that an experiment on the
/// implementation can tell from the others; ways to spoil a formula that nobody can tell apart from
/// outside, or that one repair mends, are one cause.
namespace lossgate::properties {

struct Cause {
  std::string_view name;
  std::string_view statement;  ///< one sentence
  std::string_view repair;     ///< what usually mends it; empty where the property says more
  /// Whether it says what was seen and not why: all that is left where no experiment fits.
  bool symptom = false;
};

/// The one of which experiments say that nothing but a length matters: numbers that are nearly the
/// same are off by nearly the same.
inline constexpr std::string_view kWrongBeyondALength = "wrong beyond a length";

/// Of a gradient at a position that was added for a function which shifts labels itself.
inline constexpr std::string_view kBeyondTheShift = "gradient beyond the shift";

const std::vector<Cause>& causes();
const Cause* find_cause(std::string_view name);

/// Of what came back and is no result, by what the refusal names beside it (Refusal::beside).
std::string_view cause_of_no_result(const std::vector<std::string>& beside);

/// Whether it is that of a call which gave no result: what is no answer is none beside any
/// reference.
bool gives_no_result(std::string_view cause);

}  // namespace lossgate::properties
