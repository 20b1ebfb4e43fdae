// SPDX-License-Identifier: Apache-2.0
#include "ci/scale_recognition.h"

#include <cmath>

#include "ci/candidates.h"
#include "ci/elsewhere.h"

namespace lossgate::ci {

int power_of(double factor, const OptionValue& value) {
  const double* number = std::get_if<double>(&value);
  if (!number || *number <= 0.0 || *number == 1.0 || !(factor > 0.0)) return 0;
  const double power = std::log(factor) / std::log(*number), nearest = std::round(power);
  const bool whole = std::fabs(power - nearest) < 1e-3 && std::fabs(nearest) <= 4.0;
  return whole ? static_cast<int>(nearest) : 0;
}

std::string free_scale(Function& function, Interview& interview) {
  const LossSignature& loss = interview.loss->signature;
  if (!loss.advantage.empty()) return "";
  for (const std::string& name : interview.greeting.options) {
    const OptionValue* kept = find_value(interview.subject.options, name);
    const Option& option = *loss.find_option(name);
    const bool spans = option.kind == Option::Kind::real && option.high >= 4.0;
    if (!spans || !kept || *kept != OptionValue(1.0)) continue;
    const auto is_square = [&](double value) {
      const auto factor = factor_at(function, interview, name, value);
      return power_of(factor, value) == 2;
    };
    if (!is_square(2.0) || !is_square(4.0)) continue;
    std::erase_if(interview.subject.options, [&](const auto& each) { return each.first == name; });
    return name;
  }
  return "";
}

}  // namespace lossgate::ci
