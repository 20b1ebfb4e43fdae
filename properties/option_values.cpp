// SPDX-License-Identifier: Apache-2.0
#include "properties/option_values.h"

#include <string>
#include <variant>

namespace lossgate::properties {

const double* number_of(const LossSpec& spec, const Option& option) {
  const OptionValue* value = spec.find(option.name);
  return value ? std::get_if<double>(value) : nullptr;
}

std::vector<OptionValue> other_values(const LossSignature& signature, const LossSpec& spec,
                                      const Option& option) {
  std::vector<OptionValue> values = {option.standard};
  if (option.nullable) values.emplace_back(None{});
  for (const std::string& choice : option.choices) values.emplace_back(choice);
  if (option.kind == Option::Kind::flag) {
    values.emplace_back(0.0);
    values.emplace_back(1.0);
  }
  if (option.kind == Option::Kind::real || option.kind == Option::Kind::integer) {
    for (const double value : {0.0, 1.0, option.low}) values.emplace_back(value);
  }
  if (const double* own = number_of(spec, option); own && option.kind != Option::Kind::flag) {
    for (const double value : {1.0 / *own, *own * *own, 1.0 - *own}) values.emplace_back(value);
    for (const Option& other : signature.options) {
      if (const double* number = number_of(spec, other)) values.emplace_back(*number);
    }
  }
  const OptionValue* given = spec.find(option.name);
  std::erase_if(values, [&](const OptionValue& value) { return given && value == *given; });
  return values;
}

Case with_value(const LossSignature& signature, Case c, const Option& option,
                const OptionValue& value) {
  c.spec.set(option.name, value);
  follow(signature, c.spec);
  return c;
}

}  // namespace lossgate::properties
