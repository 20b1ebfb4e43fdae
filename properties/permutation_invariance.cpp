// SPDX-License-Identifier: Apache-2.0
#include "properties/agreement.h"
#include "properties/checks.h"

namespace lossgate::properties {

Outcome permutation_invariance(Evaluation& evaluation) {
  Outcome outcome = compare_transformed(evaluation, kRowsPermuted);
  if (outcome.violation && outcome.violation->detail.empty()) {
    outcome.violation->detail = "sequences changed places";
    outcome.violation->cause = "a row reads another row";
  }
  return outcome;
}

}  // namespace lossgate::properties
