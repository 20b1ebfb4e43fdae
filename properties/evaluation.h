// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "impl/implementation.h"
#include "properties/transforms.h"
#include "properties/verdict.h"
#include "reference/reference.h"

namespace lossgate::properties {

/// The reference's view of one case, shared by all implementations: values and bounds once per
/// distinct arithmetic, transformed cases once per transform.
class CaseStudy {
 public:
  CaseStudy(const reference::Loss& loss, Case c);
  /// Of a case that is kept elsewhere for as long, and is not copied unless it is split.
  CaseStudy(const reference::Loss& loss, std::shared_ptr<const Case> c);
  ~CaseStudy();
  CaseStudy(const CaseStudy&) = delete;
  CaseStudy& operator=(const CaseStudy&) = delete;

  const reference::Loss& loss() const { return loss_; }
  const LossSignature& signature() const { return loss_.signature; }
  const Case& whole() const { return *whole_; }  ///< unsplit
  const Case& split() const { return *split_; }  ///< as given

  /// Whether the case is one of those of which no second copy is kept for longer than needed.
  bool large() const;
  /// Gives back what was derived from a large case.
  void forget_derived();

  /// What a sound implementation refuses about this case, if anything. A refused case has no
  /// outputs and no expectations.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  const std::vector<OutputInfo>& outputs() const;
  bool valid(std::int64_t sequence, std::int64_t token) const;

  /// Visits every entry of the wanted outputs with its expectation under the arithmetic. With
  /// `split`, partial results are accumulated over the parts of the case. What is small is computed
  /// once and kept, the loss and the values of a large case too; its gradients are streamed anew
  /// (rule A7). A visitor that has seen enough throws Enough.
  using Visitor =
      std::function<void(std::size_t output, std::int64_t index, const reference::Tracked&)>;
  enum class Wanted { everything, values };  ///< values: the loss, and no gradient
  struct Enough {};
  void for_each_expected(const Arithmetic& arithmetic, bool split, const Visitor& visit,
                         Wanted wanted = Wanted::everything);

  /// The same of the whole case under two arithmetics, side by side.
  using PairVisitor = std::function<void(std::size_t output, std::int64_t index,
                                         const reference::Tracked&, const reference::Tracked&)>;
  void for_each_pair(const Arithmetic& one, const Arithmetic& other, const PairVisitor& visit);

  /// The transformed case; made once, null where the transform does not apply to this case.
  const Transformed* transformed(const Transform& transform);

  /// The study of the transformed case in its own right; null where the transform does not apply.
  CaseStudy* derived(const Transform& transform);

  /// A result for the whole case that a sound sibling gave, for path parity.
  struct Sibling {
    std::string name;
    Arithmetic arithmetic;
    LossResult result;
  };
  std::optional<Sibling> sibling;

 private:
  struct Expectations;
  struct Derived;

  const reference::Problem& problem(bool split) const;
  void stream(const Arithmetic& arithmetic, bool split, Wanted wanted,
              reference::Sink<reference::Tracked>& sink) const;
  const Expectations& stored(const Arithmetic& arithmetic, bool split, Wanted wanted);

  const reference::Loss& loss_;
  std::shared_ptr<const Case> split_, whole_;  ///< the same one where it is not split
  std::optional<Refusal> refusal_;
  std::optional<reference::Problem> problem_, split_problem_;
  std::vector<std::unique_ptr<Expectations>> expectations_;
  std::map<std::string_view, std::unique_ptr<Derived>> derived_;
};

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

  /// Tells the implementation of transformed cases that it will be asked about soon.
  void foresee(const std::vector<const Transform*>& transforms);
  void foresee_nothing();

  /// What the comparison of the whole case with the reference came to, where it was made.
  std::optional<Outcome> agreement;

  /// Gives back all results but that on the whole case, and what was derived, where the case is
  /// large.
  void forget_derived();
  /// The same of one result.
  void forget(const Transform& transform);

 private:
  CaseStudy& study_;
  const impl::Implementation& implementation_;
  Arithmetic arithmetic_, stable_;
  std::map<std::string_view, LossResult> results_;
  int calls_ = 0;
};

}  // namespace lossgate::properties
