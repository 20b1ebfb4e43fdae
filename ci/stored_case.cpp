// SPDX-License-Identifier: Apache-2.0
#include "ci/stored_case.h"

#include <utility>

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
