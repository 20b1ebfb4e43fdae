// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/evaluation.h"
#include "properties/verdict.h"

namespace lossgate::properties {

enum class Tier { core, wide, hardening };
std::string_view name(Tier tier);

/// How a property stands to the two questions that come before all comparisons, is it finite and is
/// it the formula (rule E2): one fault is one finding, not eight.
enum class Precedence {
  finite,   ///< it is the question of finiteness
  formula,  ///< it is the question of the formula, not asked of what is not finite
  yields,   ///< asked only of an implementation that is finite and the formula
  always,
};

/// A sentence that is true of every sound implementation.
struct Property {
  std::string name;  ///< what is true, never what went wrong
  Tier tier = Tier::core;
  std::string statement;
  std::string rules;  ///< the numbered rules it rests on
  Outcome (*ask)(Evaluation&);
  Precedence precedence = Precedence::yields;
  /// What it will ask about besides the case as it is, where that is known beforehand.
  std::vector<const Transform*> transforms = {};
  /// Whether long cases are asked, too (rule E10): a length may change the answer, and it takes few
  /// calls.
  bool of_long = false;

  /// The outcome; what the implementation does not compute is skipped, and what hangs on advice
  /// is a note (properties/advice.h).
  Outcome check(Evaluation& evaluation) const;
};

/// All properties, in order of precedence.
const std::vector<Property>& catalog();
const Property* find_property(std::string_view name);

/// The outcome of each property, in the same order. With precedence, comparisons of an
/// implementation that is not finite or not the formula are skipped (rule E2). `before`, if any,
/// hears of each property before it is asked.
std::vector<Outcome> check_all(Evaluation& evaluation,
                               const std::vector<const Property*>& properties, bool precedence,
                               const std::function<void(const Property&)>& before = nullptr);

/// A violation with what can be said without another call: as if its options had no part in it, and
/// rare.
Finding bare_finding(const CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation);

/// A violation with its grade and its fingerprint (rules E5, E6), and no reach yet; a few
/// evaluations. `benign` says that the case came from the benign profile.
Finding name_finding(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation, bool benign);

/// How far a case must go to violate (rule E5): bisected along the signature's reach axes whose
/// tame end holds, some dozens of evaluations; that of which it takes the largest share. Empty
/// where there is none.
std::string reach_of(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation);

/// The finding with all of it.
Finding make_finding(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation, bool benign);

}  // namespace lossgate::properties
