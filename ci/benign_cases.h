// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ci/selection.h"

namespace lossgate::ci {

/// The index-th case of the loss as ordinary unit tests have them; every fourth of several
/// sequences has one without an advantage. No seed of a run is in it.
Case benign_case(const LossSignature& signature, Dtype dtype, std::int64_t index);

/// What subjects (ci/variant.h: guarded) show on benign cases, asked once of each. All are asked
/// the same ones, whatever run asks and whichever case failed, so that a grade (rule E5) and a
/// fingerprint (rule E7) are the subject's own: in a gate, with another seed, in a replay.
class BenignCases {
 public:
  /// Of what the selection brought, a formula is asked in a process of its own.
  explicit BenignCases(const Selection& selection) : selection_(selection) {}

  /// Whether one of them violates the property for the cause of what the `failing` case shows; else
  /// whether one does under the options of that case, of which numbers at an end of their range are
  /// left at their defaults: who sets an option has it in every batch.
  bool show(const reference::Loss& loss, const impl::Implementation& subject,
            const properties::Property& property, const Case& failing, const std::string& cause);

  /// Whether the violation says no more than that the subject's formula is another, in the widest
  /// format that it takes. `before` hears of each call in a process of its own.
  bool another_formula(const reference::Loss& loss, const impl::Implementation& subject,
                       const properties::Property& property, const properties::Violation& violation,
                       const std::function<void()>& before = {});

 private:
  bool shows(const reference::Loss& loss, const impl::Implementation& subject,
             const properties::Property& property, Dtype dtype, const std::string& cause,
             const std::optional<LossSpec>& spec);

  const Selection& selection_;
  std::map<std::string, bool> shown_, another_formula_;
};

}  // namespace lossgate::ci
