// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ci/emission.h"
#include "ci/made_case.h"
#include "reference/reference.h"

namespace lossgate::ci {
namespace {

using impl::Combination;

/// Properties that are asked of one call on the case as it is, or of its micro-batches; or on a
/// case that they make of it.
bool is_written(const properties::Property& property) {
  constexpr std::string_view kPlain[] = {"finite_forward",      "finite_backward",
                                         "reference_agreement", "split_invariance",
                                         "error_on_invalid",    "bounds_hold"};
  return std::ranges::find(kPlain, property.name) != std::end(kPlain) || is_of_made_case(property);
}

/// By name, in order of precedence.
std::string all_written() {
  std::vector<std::string> names;
  for (const properties::Property& property : properties::catalog()) {
    if (is_written(property)) names.push_back(property.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Whether what fails is a number that the function returns beside its loss.
bool is_beside_a_loss(const Emission& e) {
  const auto outputs = outputs_of(e.brought->loss.signature, e.c);
  const auto output = std::ranges::find(outputs, e.violation.place.output, &OutputInfo::name);
  return output != outputs.end() && output->kind == OutputKind::value &&
         std::ranges::count(outputs, OutputKind::loss, &OutputInfo::kind) > 0;
}

}  // namespace

std::string cannot_emit(const Emission& e) {
  const impl::Subject& subject = e.brought->subject;
  if (!subject.entry.starts_with("py:")) {
    return "is written for functions in Python; " + subject.name + " is " + subject.entry;
  }
  const std::string name = subject.entry.substr(subject.entry.find_last_of(":.") + 1);
  if (e.brought->greeting.code.find("def " + name) == std::string::npos) {
    return "is written for functions; " + subject.name + " is made by a class";
  }
  if (subject.per_token || subject.weighed_outputs) {
    return "is written for functions that return their loss; " + subject.name + " returns " +
           (subject.per_token ? "per_token" : "outputs");
  }
  if (!is_written(*e.property)) {
    return fmt::format("is written for {}, not for {}", all_written(), e.property->name);
  }
  const bool ranks = e.property->name == "split_invariance" && e.c.split.world > 1;
  if (ranks && (subject.ranks == Combination::mean || subject.ranks != subject.micro_batches)) {
    return "does not write what ranks do with their losses, but where it is the sum";
  }
  if (subject.device != "cpu") {
    return "is written for the CPU; " + subject.name + " is asked on " + subject.device;
  }
  return "";
}

std::string cannot_say(const Emission& e) {
  if (e.c.layout != Layout::contiguous) {
    return "writes no views of other memory, and fails only where the layout is " +
           std::string(lossgate::name(e.c.layout));
  }
  if (e.property->name == "split_invariance" && !e.c.split.whole() && is_beside_a_loss(e)) {
    return "puts the losses of micro-batches together, not their " + e.violation.place.output;
  }
  if (e.property->name != "error_on_invalid") return "";
  if (e.violation.cause == "refusal names another argument") {
    return "does not write which argument a refusal names";
  }
  const bool invalid = reference::expected_refusal(e.brought->loss, e.c).has_value();
  return invalid ? ""
                 : "is of a case that is invalid itself, not of what the property makes of one";
}

}  // namespace lossgate::ci
