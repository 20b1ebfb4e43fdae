// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "properties/transforms.h"
#include "reference/filter.h"
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
  const Case& split() const;                     ///< as given

  /// Whether the case is one of those of which no second copy is kept for longer than needed.
  bool large() const;
  /// Whether its formula may be computed twice at once: a function of one's own answers one
  /// question at a time.
  bool concurrent() const { return !loss_.advice; }
  /// Gives back what was derived from a large case.
  void forget_derived();

  /// What a sound implementation refuses about this case, if anything. A refused case has no
  /// outputs and no expectations.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  const std::vector<OutputInfo>& outputs() const;
  bool valid(std::int64_t sequence, std::int64_t token) const;

  /// Whether data that counts holds a NaN.
  bool nan_at_valid();

  /// Visits every entry of the wanted outputs with its expectation under the arithmetic. With
  /// `split`, partial results are accumulated over the parts of the case. What is small is computed
  /// once and kept, the loss and the values of a large case too; its gradients are streamed anew
  /// (rule A7).
  using Visitor =
      std::function<void(std::size_t output, std::int64_t index, const reference::Tracked&)>;
  enum class Wanted { everything, values };  ///< values: the loss, and no gradient
  void for_each_expected(const Arithmetic& arithmetic, bool split, const Visitor& visit,
                         Wanted wanted = Wanted::everything);

  /// Whether an entry is such a one; those behind the first are not visited.
  using Predicate =
      std::function<bool(std::size_t output, std::int64_t index, const reference::Tracked&)>;
  bool any_expected(const Arithmetic& arithmetic, bool split, const Predicate& is_one,
                    Wanted wanted = Wanted::everything);

  /// The same entries as double has them, in place of `everything`; null where only long double
  /// will do (rule B9).
  const reference::Approximation* approximation(const Arithmetic& arithmetic, bool split);
  bool filtered = true;  ///< whether double is asked at all

  std::size_t count(Wanted wanted) const;  ///< of outputs

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
  struct Approximations;
  struct Expectations;
  struct Derived;

  const reference::Problem& problem(bool split);
  void stream(const Arithmetic& arithmetic, bool split, Wanted wanted,
              reference::Sink<reference::Tracked>& sink);
  const Expectations* known(const Arithmetic& arithmetic, bool split, Wanted wanted) const;
  const Expectations& stored(const Arithmetic& arithmetic, bool split, Wanted wanted);
  /// Null where they are streamed.
  const Expectations* kept(const Arithmetic& arithmetic, bool split, Wanted wanted);

  const reference::Loss& loss_;
  Split given_;
  std::shared_ptr<const Case> whole_;
  mutable std::shared_ptr<const Case> split_;  ///< made where it is asked; whole_ where not split
  std::optional<Refusal> refusal_;
  std::optional<reference::Problem> problem_, split_problem_;  ///< the second where it is asked
  std::optional<bool> nan_at_valid_;
  bool is_derived_ = false;  ///< then who asks for values will not ask for gradients
  std::vector<std::unique_ptr<Approximations>> approximations_;
  std::vector<std::unique_ptr<Expectations>> expectations_;
  std::map<std::string_view, std::unique_ptr<Derived>> derived_;
};

}  // namespace lossgate::properties
