// SPDX-License-Identifier: Apache-2.0
#include "ci/never_told.h"

#include <fmt/format.h>

#include <algorithm>

#include "ci/candidates.h"
#include "report/value_text.h"

namespace lossgate::ci {

std::vector<std::string> never_told(const Brought& brought) {
  std::vector<std::string> said;
  for (const auto& [name, own] : brought.greeting.defaults) {
    const OptionValue* kept = find_value(brought.subject.options, name);
    const Option* option = whole_signature(brought.subject).find_option(name);
    const auto& told = brought.greeting.options;
    const bool is_told = std::ranges::find(told, name) != told.end();
    if (!kept || !option || !is_told || own == *kept || !accepts(*option, own)) continue;
    const bool any_number = report::option_text(*kept) == impl::kAnyNumber;
    if (any_number && std::holds_alternative<double>(own)) continue;
    said.push_back(fmt::format(
        "{} other than {}, a parameter of the function whose own default is {}", name,
        any_number ? "a number" : report::option_text(*kept), report::option_text(own)));
  }
  return said;
}

std::vector<std::string> taken_as(const Brought& brought) {
  std::vector<std::string> said;
  for (const std::string& name : brought.fixed) {
    const OptionValue* value = find_value(brought.subject.options, name);
    const LossSignature& loss = whole_signature(brought.subject);
    const auto& own = brought.subject.reductions;
    if (!is_read(loss, own.empty() ? loss.reductions : own, name)) continue;
    if (value) said.push_back(name + " " + report::option_text(*value));
  }
  return said;
}

}  // namespace lossgate::ci
