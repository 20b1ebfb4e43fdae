// SPDX-License-Identifier: Apache-2.0
#include "ci/first_failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "ci/errors.h"
#include "impl/external/process.h"

namespace lossgate::ci {
namespace {

std::string no_return(const impl::Implementation& implementation, const std::exception& error) {
  return fmt::format(
      "{} does not return from it ({}): `lossgate replay` shows that, there is no failure of a "
      "property to go on from",
      implementation.name, error.what());
}

}  // namespace

const Brought* brought_as(const Selection& selection, const impl::Implementation& implementation) {
  for (const auto& brought : selection.brought) {
    if (&brought->implementation == &implementation) return brought.get();
  }
  return nullptr;
}

void check_computed(const Selection& selection, const Case& c, const std::string& file) {
  const auto computes = [&](const impl::Implementation* i) { return i->loss == c.spec.loss; };
  if (std::ranges::any_of(selection.implementations, computes)) return;
  throw InputError(file + ": none of the implementations asked for computes " + c.spec.loss);
}

std::string why_unasked(const Selection& selection, const Case& c) {
  std::string text;
  for (const impl::Implementation* implementation : selection.implementations) {
    if (implementation->loss != c.spec.loss) continue;
    const auto reason = implementation->unsupported ? implementation->unsupported(c) : std::nullopt;
    if (!reason) return "";
    text += fmt::format("{} was not asked: {}\n", implementation->name, *reason);
  }
  return text.empty() ? "" : text + "nothing was asked\n";
}

std::optional<fuzz::Failure> first_failure(
    const Selection& selection, const Case& c,
    const std::function<bool(const impl::Implementation&, const properties::Property&)>& wanted) {
  for (const impl::Implementation* implementation : selection.implementations) {
    if (implementation->loss != c.spec.loss) continue;
    const Brought* brought = brought_as(selection, *implementation);
    const reference::Loss* loss = brought ? &brought->loss : reference::find_loss(c.spec.loss);
    for (const properties::Property* property : selection.properties) {
      if (wanted && !wanted(*implementation, *property)) continue;
      try {
        if (auto failure = fuzz::Failure::on(*loss, *implementation, *property, c)) return failure;
      } catch (const impl::ProcessEnded& error) {
        throw DoesNotReturn(no_return(*implementation, error), *implementation);
      } catch (const impl::ProcessHung& error) {
        throw DoesNotReturn(no_return(*implementation, error), *implementation);
      }
    }
  }
  return std::nullopt;
}

std::string also_violated(const Selection& selection, const fuzz::Failure& first, const Case& c) {
  std::vector<std::string> names;
  try {
    properties::CaseStudy study(first.loss(), c);
    properties::Evaluation evaluation(study, first.implementation());
    evaluation.tells_bias = false;
    const bool precedence = !first.implementation().fault;
    const auto outcomes = check_all(evaluation, selection.properties, precedence);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const properties::Property* property = selection.properties[i];
      if (outcomes[i].violation && property != &first.property()) names.push_back(property->name);
    }
  } catch (const std::exception&) {  // the failure in hand stands, whatever else ends the process
  }
  return names.empty() ? ""
                       : fmt::format("  as well as {}: --property takes one of them\n",
                                     fmt::join(names, ", "));
}

}  // namespace lossgate::ci
