// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/likeness.h"
#include "impl/external/greeting.h"

namespace lossgate::ci {

/// A function that can be asked as any loss and in any way; a subject says which.
class Function {
 public:
  virtual ~Function() = default;
  /// Where its parameters come from. Throws SubjectError where one has no source.
  virtual impl::Greeting bind(const impl::Subject& subject, const LossSignature& loss) = 0;
  /// Its answer to a case of the loss that it is bound as.
  virtual LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                            const Case& c) = 0;
};

/// A distance that rounding inside a function may make, whatever the format of its fields.
inline constexpr double kRounding = 0.1;

/// What it answered when it was told this reduction; when it is told none, whatever it is.
struct Answers {
  Reduction reduction;
  std::vector<Probe> probes;
};

/// How a candidate compares with the answers.
struct Likeness {
  Candidate candidate;                ///< with the reduction that it fits best
  std::vector<Reduction> whole = {};  ///< under which every answer is the formula's
  int cases = 0;                      ///< compared under the candidate's reduction
  int equal = 0;                      ///< of these
  double factor = 0.0;        ///< answers = factor x formula in every case; 0 where there is none
  bool by_positions = false;  ///< the factor is that of all positions for the valid ones
  double distance = 1.0;      ///< the mean over the cases
  int place = 0;              ///< among the candidates, the plainest first
};

/// A function asked as one loss in one way.
struct Interview {
  const reference::Loss* loss;
  impl::Subject subject;  ///< its options are what the function is told, however it is asked
  impl::Greeting greeting;
  Formula formula;
  std::vector<Answers> answers;
  std::vector<Likeness> likenesses;  ///< the likest first; the plainest of equals
  int answered = 0;
  int uncomputed = 0;        ///< cases of which it says that it does not compute such
  std::string refusal = {};  ///< the last, if any
  /// It has none of the terms that the loss's coefficient scales: a field stands in these that it
  /// does not take.
  bool bare = false;

  const Likeness& best() const { return likenesses.front(); }
  bool whole() const { return !likenesses.empty() && !best().whole.empty(); }
  /// Whole, in every case that it was asked.
  bool complete() const { return whole() && uncomputed == 0; }
  std::vector<std::string> untold() const;  ///< options that do not reach the function
  /// Of these options those that may have any value: not the coefficient of terms that it lacks.
  std::vector<std::string> open(std::vector<std::string> options) const;
  /// Those that it answered when it was told the reduction.
  const std::vector<Probe>& probes(Reduction reduction) const;
};

/// Asks telling cases and compares the answers with every combination of likely values. Options
/// that reach the function are told as in `subject.options`, else their defaults. Throws
/// SubjectError, ProcessEnded, ProcessHung.
Interview interview(Function& function, const reference::Loss& loss, impl::Subject subject,
                    Dtype dtype);

/// One more case for a function that is bound already; nothing where it says that it does not
/// compute such cases.
std::optional<Probe> ask(Function& function, const Interview& interview, Case c);

/// The factor that all these are, or 0.
double constant(const std::vector<double>& factors);

/// Every combination of likely values beside the answers, the likest first.
std::vector<Likeness> compare(const Interview& interview);

Likeness liken(const Interview& interview, const OptionValues& untold, Reduction reduction);

/// Fields that the loss needs, whatever its options are, and that the function does not take.
std::vector<std::string> missing_fields(const Interview& interview);

}  // namespace lossgate::ci
