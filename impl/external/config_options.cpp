// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "corpora/element_text.h"

namespace lossgate::impl {
namespace {

/// The value that pins an option, if it is one that the option may have.
OptionValue option_value(const Reader& reader, const Option& option, const toml::node& node) {
  const auto text = node.value_exact<std::string>();
  if (text && *text == "none") {
    if (!option.nullable) reader.fail(node.source(), in_quotes(option.name) + " cannot be none");
    return None{};
  }
  if (text && *text == kAnyNumber && option.nullable) return *text;
  if (option.kind == Option::Kind::choice) {
    if (!text || std::ranges::find(option.choices, *text) == option.choices.end()) {
      reader.fail(node.source(),
                  in_quotes(option.name) + " must be one of " + listed(option.choices));
    }
    return *text;
  }
  const auto truth = node.value_exact<bool>();
  const auto number = truth ? std::optional(*truth ? 1.0 : 0.0) : node.value<double>();
  if (!number || !(*number >= option.low && *number <= option.high)) {
    reader.fail(node.source(), in_quotes(option.name) + " must be a number from " +
                                   corpora::number_text(option.low) + " to " +
                                   corpora::number_text(option.high));
  }
  if (option.kind != Option::Kind::real && *number != std::trunc(*number)) {
    reader.fail(node.source(), in_quotes(option.name) + " must be a whole number");
  }
  return *number;
}

}  // namespace

void read_options(const Reader& reader, const LossSignature& loss, Subject& subject) {
  const toml::table* table = reader.table("options");
  if (!table) return;
  for (const auto& [key, value] : *table) {
    const Option* option = loss.find_option(key.str());
    if (!option) {
      std::vector<std::string> known;
      for (const Option& each : loss.options) known.push_back(each.name);
      reader.fail(key.source(),
                  loss.id + " has no option " + in_quotes(key.str()) + "; it has " + listed(known));
    }
    subject.options.emplace_back(option->name, option_value(reader, *option, value));
  }
}

}  // namespace lossgate::impl
