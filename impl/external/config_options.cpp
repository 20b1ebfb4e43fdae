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
      reader.fail(key.source(), loss.id + " has no option " + in_quotes(key.str()) + "; it has " +
                                    listed(known) + corpora::meant_text(key.str(), known));
    }
    subject.options.emplace_back(option->name, option_value(reader, *option, value));
  }
}

void read_scale(const Reader& reader, const LossSignature& loss, Subject& subject) {
  const toml::node* node = reader.find("scale");
  if (!node) return;
  const auto fail = [&](const std::string& text) { reader.fail(node->source(), text); };
  if (subject.own) fail("'scale' is of a loss of the catalog: a signature has no formula");
  // Where an importance weight grows with exp there is no room for a multiple of it.
  if (!loss.advantage.empty())
    fail("'scale' is of losses without an advantage, as divergences are");
  std::vector<std::string> known;
  for (const Option& option : loss.options) {
    const bool spans = option.low <= 1.0 && option.high >= 2.0 && !option.nullable;
    if (option.kind == Option::Kind::real && spans) known.push_back(option.name + "^2");
  }
  const std::string text = reader.text("scale");
  if (known.empty()) fail(loss.id + " has no option whose square could be a scale");
  if (std::ranges::find(known, text) == known.end()) {
    fail("'scale' must be one of " + listed(known));
  }
  subject.scaled_by = text.substr(0, text.size() - 2);
  for (const auto& [name, value] : subject.options) {
    const double* number = std::get_if<double>(&value);
    if (name != subject.scaled_by || (number && (*number == 1.0 || *number == 2.0))) continue;
    fail("'scale' is asked where " + name + " is 1 or 2, whose squares divide without rounding; " +
         "'options' has another");
  }
}

}  // namespace lossgate::impl
