// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "impl/catalog.h"

namespace lossgate::impl {

const Implementation* find(std::string_view loss, std::string_view name) {
  const auto& all = catalog();
  const auto at = std::ranges::find_if(
      all, [&](const Implementation& one) { return one.loss == loss && one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

const Implementation* twin_of(const Implementation& faulty) {
  return find(faulty.loss, faulty.fault->twin);
}

}  // namespace lossgate::impl
