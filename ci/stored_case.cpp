// SPDX-License-Identifier: Apache-2.0
#include "ci/stored_case.h"

#include <algorithm>
#include <utility>

#include "corpora/files.h"
#include "reference/spec/contract.h"
#include "reference/spec/numbers.h"

namespace lossgate::ci {
namespace {

/// The loss under its whole signature, in the dtypes of the subject's callers.
reference::Loss whole_loss(const Brought& brought) {
  reference::Loss whole = brought.loss;
  whole.signature = whole_signature(brought.subject);
  for (Field& field : whole.signature.fields) {
    field.wide = brought.loss.signature.find_field(field.name)->wide;
  }
  return whole;
}

bool is_refused(const Brought& brought, const Case& c) {
  return reference::expected_refusal(whole_loss(brought), c).has_value();
}

}  // namespace

LossSignature as_declared(LossSignature whole, const impl::Subject& subject) {
  for (const auto& [name, value] : subject.options) {
    const auto option = std::ranges::find(whole.options, name, &Option::name);
    if (option != whole.options.end() && !impl::is_any_number(value)) option->standard = value;
  }
  return whole;
}

Case read_case(const std::filesystem::path& path, const Selection& selection) {
  LossSignature declared;
  const auto find = [&](std::string_view loss) -> const LossSignature* {
    const LossSignature* whole = selection.find_signature(loss);
    const auto subject = std::ranges::find_if(
        selection.brought, [&](const auto& one) { return one->subject.loss == loss; });
    if (!whole || subject == selection.brought.end()) return whole;
    declared = as_declared(*whole, (*subject)->subject);
    return &declared;
  };
  return corpora::read_case_file(path, find);
}

Case as_its_callers_have_it(const LossSignature& signature, Case c) {
  const Dtype shared = float_dtype(signature, c);
  for (const Field& field : signature.fields) {
    if (!field.wide) continue;
    Tensor& tensor = c.batch.at(field.name);
    tensor = as_dtype(std::move(tensor), dtype_beside(field, shared));
  }
  return c;
}

std::optional<Case> at_its_options(const Brought& brought, Case c) {
  const impl::Subject& subject = brought.subject;
  const LossSpec stored = c.spec;
  const bool was_refused = is_refused(brought, c);
  if (!subject.reductions.empty() &&
      std::ranges::count(subject.reductions, stored.reduction) == 0) {
    c.spec.reduction = subject.reductions.front();
  }
  for (const auto& [name, value] : subject.options) {
    if (stored.find(name) && !impl::is_any_number(value)) c.spec.set(name, value);
  }
  for (const auto& [name, followed] : subject.tied) {
    if (const OptionValue* value = c.spec.find(followed)) c.spec.set(name, *value);
  }
  if (c.spec == stored || is_refused(brought, c) != was_refused) return std::nullopt;
  // What it is called, and is told of, may be of the options that it had.
  if (!c.provenance.title.empty()) c.provenance.title += ", under other options";
  c.provenance.story.clear();
  return c;
}

bool is_outside_contract(const Brought& brought, const Case& c) {
  return is_refused(brought, c) ? !brought.implementation.contract.refuses_invalid
                                : !keeps_to_contract(brought.loss.signature, c);
}

}  // namespace lossgate::ci
