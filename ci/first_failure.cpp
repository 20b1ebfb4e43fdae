// SPDX-License-Identifier: Apache-2.0
#include "ci/first_failure.h"

namespace lossgate::ci {

const Brought* brought_as(const Selection& selection, const impl::Implementation& implementation) {
  for (const auto& brought : selection.brought) {
    if (&brought->implementation == &implementation) return brought.get();
  }
  return nullptr;
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
      if (auto failure = fuzz::Failure::on(*loss, *implementation, *property, c)) return failure;
    }
  }
  return std::nullopt;
}

}  // namespace lossgate::ci
