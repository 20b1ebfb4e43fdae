// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "properties/diagnosis.h"
#include "properties/plain_case.h"
#include "properties/reading.h"

namespace lossgate::properties {

/// An implementation and the violation that is to be explained: what probes experiment on.
class Suspect {
 public:
  Suspect(CaseStudy& study, const impl::Implementation& implementation, const Violation& violation)
      : study_(study), implementation_(implementation), violation_(violation) {}

  const reference::Loss& loss() const { return study_.loss(); }
  const LossSignature& signature() const { return loss().signature; }
  const impl::Implementation& implementation() const { return implementation_; }
  const Violation& violation() const { return violation_; }
  const Case& given() const { return study_.whole(); }
  const Split& split() const { return study_.split().split; }

  std::optional<Reading> read(const std::optional<Case>& c) const {
    return c ? Reading::of(loss(), implementation(), *c) : std::nullopt;
  }
  /// Nothing of a case that callers do not make.
  std::optional<Reading> read_if_made(const std::optional<Case>& c) const;
  /// Whether what fits the reading fits the answers to cases like it with other numbers, too,
  /// wherever they are wrong: one case has more than one explanation [the larger of two means is
  /// one of both]. `plain` says which numbers.
  bool fits(const Reading& reading, const std::function<bool(const Reading&)>& fit,
            Plain plain = {}) const;
  /// A plain case in the widest format that is computed; in that of the given case where the widest
  /// one has a fault of its own.
  std::optional<Case> plain_case(Plain plain = {}) const;
  /// What is answered to a plain case, a wrong answer where there is one: to that with the options
  /// of the given case, without the other terms where that is wrong, too, or to that of another
  /// reduction. To the given case where there is no plain one.
  const std::optional<Reading>& plain();
  /// Whether that is a wrong number: no edge explains it.
  bool wrong_on_plain();
  /// Whether a value is wrong, of the violation or of the answer to the given case: no gradient
  /// explains it.
  bool wrong_in_values();
  /// What is answered to the given case.
  const std::optional<Reading>& as_given();

 private:
  /// Whether plain numbers in the widest format are wrong, and not so in that of the given case.
  bool widest_is_another() const;

  CaseStudy& study_;
  const impl::Implementation& implementation_;
  const Violation& violation_;
  std::optional<std::optional<Reading>> plain_, as_given_;
  mutable std::optional<bool> widest_is_another_;
};

}  // namespace lossgate::properties
