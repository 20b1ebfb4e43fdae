// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/products.h"

namespace lossgate::reference {

/// a b c ..., of which one may overflow while another underflows, whatever their product is:
/// infinity times 0 is NaN, which no factor of 0 silences afterwards.
template <class S, class... More>
S opposed_product(const S& a, const S& b, const S& c, const More&... more) {
  return product(a, b, c, more...);
}

template <class... More>
Tracked opposed_product(const Tracked& a, const Tracked& b, const Tracked& c, const More&... more) {
  Tracked result = product(a, b, c, more...);
  const bool comes_back = tracking::most(result) <= tracking::largest;
  if (result.peak > tracking::largest && comes_back) result.peak = tracking::kInfinity;
  return result;
}

}  // namespace lossgate::reference
