// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/tenfold.h"

namespace lossgate::ci::evidence {
namespace {

Arithmetic tenfold(Arithmetic arithmetic) {
  constexpr double kFactor = 10.0;
  for (double* error : {&arithmetic.roundoff, &arithmetic.eta, &arithmetic.sum.roundoff,
                        &arithmetic.matmul.roundoff}) {
    *error *= kFactor;
  }
  for (Store& store : arithmetic.stages) store = {store.roundoff * kFactor, store.eta * kFactor};
  return arithmetic;
}

}  // namespace

impl::Implementation with_tenfold_errors(const impl::Implementation& row) {
  impl::Implementation wide = row;
  wide.arithmetic = [own = row.arithmetic](Dtype stored) { return tenfold(own(stored)); };
  return wide;
}

}  // namespace lossgate::ci::evidence
