// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/evaluation.h"
#include "properties/verdict.h"

namespace lossgate::properties {

enum class Tier { core, wide, hardening };
std::string_view name(Tier tier);

/// How a property stands to finiteness (rule E2): one NaN is one finding, not eight.
enum class Precedence {
  decides,  ///< it is the question of finiteness
  yields,   ///< not asked of an implementation that is not finite
  always,
};

/// A sentence that is true of every sound implementation.
struct Property {
  std::string name;  ///< what is true, never what went wrong
  Tier tier = Tier::core;
  std::string statement;
  std::string rules;  ///< the numbered rules it rests on
  Outcome (*check)(Evaluation&);
  Precedence precedence = Precedence::yields;
};

/// All properties, in order of precedence.
const std::vector<Property>& catalog();
const Property* find_property(std::string_view name);

/// The outcome of each property, in the same order. With precedence, comparisons of an
/// implementation whose finiteness is violated are skipped (rule E2): one NaN is one finding.
std::vector<Outcome> check_all(Evaluation& evaluation,
                               const std::vector<const Property*>& properties, bool precedence);

/// Turns a violation into a finding: reach by bisection along the signature's reach axes with fresh
/// evaluations, grade, fingerprint (rules E5, E6). `benign` says that the case came from the benign
/// profile.
Finding make_finding(CaseStudy& study, const impl::Implementation& implementation,
                     const Property& property, const Violation& violation, bool benign);

}  // namespace lossgate::properties
