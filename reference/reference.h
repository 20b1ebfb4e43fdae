// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/problem.h"

namespace lossgate::reference {

/// What stands for a formula where there is none: values by somebody's word, with bounds that are
/// rough. What hangs on them is advice.
struct Advice {
  std::function<void(const Problem&, const Arithmetic&, Sink<Tracked>&)> values;
  /// Whether this arithmetic rounds so finely that a difference cannot be rounding.
  bool (*judges)(const Arithmetic&) = nullptr;
};

/// One loss as the rest of the program sees it: data and two functions.
struct Loss {
  LossSignature signature;
  /// Streams value and bound of every output entry under the arithmetic in scope.
  void (*evaluate)(const Inputs<Tracked>&, const Outputs<Tracked>&);
  /// The input at fault, where the loss itself asks more than its signature says.
  std::optional<Refusal> (*refuse)(const Case&);
  std::optional<Advice> advice = {};  ///< in place of `evaluate`
};

const std::vector<Loss>& catalog();
const Loss* find_loss(std::string_view id);
const LossSignature* find_signature(std::string_view id);

/// The refusal that a sound implementation owes this case (rule C7), if any: a missing or misshapen
/// field, an unknown or out-of-range option, a mask that is not 0 or 1, a label outside the
/// vocabulary at a valid position.
std::optional<Refusal> expected_refusal(const Loss& loss, const Case& c);

/// Streams the reference's outputs for the case under an arithmetic. A case that is refused must
/// not be evaluated.
void evaluate(const Loss& loss, const Problem& problem, const Arithmetic& arithmetic,
              Sink<Tracked>& sink);

/// The same for the case as it stands and for the step divided in another way, at once; of a loss
/// that has a formula.
void evaluate(const Loss& loss, const Problem& problem, const Arithmetic& arithmetic,
              Sink<Tracked>& sink, const Accumulation& other, Sink<Tracked>& beside);

/// How Real itself computes. Its sums are compensated: their error does not grow with the terms.
Arithmetic real_arithmetic();

/// The largest ratio of an error of the reference, which computes as `own` says, to the one charged
/// to the subject. Bounds are sums of products of one such charge each, so comparing charge by
/// charge bounds every entry's ratio.
double uncertainty(const Arithmetic& own, const Arithmetic& subject);

/// Why the reference cannot judge results of this arithmetic, or empty: Real is not wider, or its
/// own error is more than a hundredth of what is allowed (rules A1, B5).
std::string_view unsuitable_for(const Arithmetic& arithmetic);

}  // namespace lossgate::reference
