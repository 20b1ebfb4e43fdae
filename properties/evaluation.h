// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "impl/implementation.h"
#include "properties/case_study.h"
#include "properties/verdict.h"

namespace lossgate::properties {

/// One implementation on one case. Identical calls are made once.
class Evaluation {
 public:
  Evaluation(CaseStudy& study, const impl::Implementation& implementation);

  CaseStudy& study() { return study_; }
  const LossSignature& signature() const { return study_.signature(); }
  const impl::Implementation& implementation() const { return implementation_; }
  const Arithmetic& arithmetic() const { return arithmetic_; }     ///< as declared
  const Arithmetic& stable_arithmetic() const { return stable_; }  ///< in the stable form (C1)

  const LossResult& actual();                            ///< on the whole, unsplit case
  const LossResult& actual(const Transform& transform);  ///< on the transformed case; it applies
  LossResult call(const Case& c);                        ///< on any other case
  int calls() const { return calls_; }
  bool has_answered() const { return results_.contains(""); }  ///< on the whole case

  /// Tells the implementation of transformed cases that it will be asked about soon.
  void foresee(const std::vector<const Transform*>& transforms);
  void foresee_nothing();

  /// Whether a split that goes wrong is told with how far others at random are off (rule D2):
  /// dozens of calls, of no use to whoever asks only what is violated and for what cause.
  bool tells_bias = true;

  /// What the comparison of the whole case with the reference came to, where it was made.
  std::optional<Outcome> agreement;

  /// Gives back all results but that on the whole case, and what was derived, where the case is
  /// large.
  void forget_derived();
  /// The same of one result.
  void forget(const Transform& transform);

 private:
  /// What the call gave; where it throws, it is made again by whoever asks again.
  const LossResult& keep(std::string_view key, const Case& c);

  CaseStudy& study_;
  const impl::Implementation& implementation_;
  Arithmetic arithmetic_, stable_;
  std::map<std::string_view, LossResult> results_;
  int calls_ = 0;
};

}  // namespace lossgate::properties
