// SPDX-License-Identifier: Apache-2.0
// What an answer depends on beside the formula's own inputs: what was asked before, how tensors lie
// in memory, what multiplies the loss.
#include <algorithm>
#include <cmath>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// A gradient from above that is no 1, and exact in every format.
constexpr double kUpstream = 0.5;

enum class Likeness { same, rounding, contradiction };

/// How near an answer is to another one to the same case. Two right ones are no further apart than
/// either may be off.
Likeness likeness(const Reading& first, const Reading& again) {
  Likeness found = Likeness::same;
  for (const ReadEntry& e : first.entries()) {
    const double x = again.result().find(first.outputs()[e.output].name)->at(e.index);
    if (x == e.actual || (std::isnan(x) && std::isnan(e.actual))) continue;
    if (!(std::fabs(x - e.actual) <= 2.0 * e.accepted)) return Likeness::contradiction;
    found = Likeness::rounding;
  }
  return found;
}

}  // namespace

/// The given case is asked again, and once more behind another one. Bits alone explain no number
/// that is wrong.
Opinion probe_state(Suspect& suspect) {
  const auto& first = suspect.as_given();
  if (!first) return std::nullopt;
  const auto ask_again = [&] {
    const auto again = suspect.read(suspect.given());
    return again ? likeness(*first, *again) : Likeness::same;
  };
  Likeness worst = ask_again();
  if (worst != Likeness::contradiction) {
    suspect.plain();
    worst = std::max(worst, ask_again());
  }
  if (worst == Likeness::contradiction) {
    return Diagnosis{"state between calls", 0.95,
                     "asked again the same case gets another answer, by more than rounding"};
  }
  if (worst == Likeness::same || !first->right()) return std::nullopt;
  return Diagnosis{"order of operations varies", 0.9,
                   "asked again the same case gets other bits, and all of them are right"};
}

/// The given case, in one piece of memory.
Opinion probe_strides(Suspect& suspect) {
  if (suspect.given().layout == Layout::contiguous || !is_wrong(suspect.as_given())) {
    return std::nullopt;
  }
  Case contiguous = suspect.given();
  contiguous.layout = Layout::contiguous;
  if (!is_right(suspect.read(contiguous))) return std::nullopt;
  return Diagnosis{"strides ignored", 0.95, "the same numbers in contiguous tensors are right"};
}

/// The plain case, the loss of which is multiplied by a half.
Opinion probe_upstream(Suspect& suspect) {
  if (suspect.given().upstream == 1.0) return std::nullopt;
  auto c = suspect.plain_case();
  if (!is_right(suspect.read(c))) return std::nullopt;
  c->upstream = kUpstream;
  const auto halved = suspect.read(c);
  if (!is_wrong_in_gradients_alone(halved)) return std::nullopt;
  const bool ignored = std::ranges::all_of(halved->entries(), [](const ReadEntry& e) {
    const double undone = e.expected / kUpstream, slack = e.accepted / kUpstream;
    return !e.wrong() || std::fabs(e.actual - undone) <= slack;
  });
  if (!ignored) return std::nullopt;
  return Diagnosis{"upstream gradient ignored", 0.95,
                   "half the loss has the gradient of the whole one"};
}

}  // namespace lossgate::properties
