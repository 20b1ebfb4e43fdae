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

}  // namespace

LossSignature as_declared(LossSignature whole, const impl::Subject& subject) {
  for (const auto& [name, value] : subject.options) {
    const auto option = std::ranges::find(whole.options, name, &Option::name);
    const bool any_number = value == OptionValue(std::string(impl::kAnyNumber));
    if (option != whole.options.end() && !any_number) option->standard = value;
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

bool is_outside_contract(const Brought& brought, const Case& c) {
  const bool refused = reference::expected_refusal(whole_loss(brought), c).has_value();
  return refused ? !brought.implementation.contract.refuses_invalid
                 : !keeps_to_contract(brought.loss.signature, c);
}

}  // namespace lossgate::ci
