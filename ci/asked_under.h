// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ci/brought.h"
#include "ci/progress.h"
#include "properties/property.h"

/// A brought function on a few cases, under its own contract or another one.
namespace lossgate::ci {

/// The subject as it would be asked under some contract.
class AskedUnder {
 public:
  AskedUnder(const Brought& brought, const impl::Subject& subject);
  AskedUnder(reference::Loss loss, impl::Implementation implementation);

  const reference::Loss& loss() const { return loss_; }
  const impl::Implementation& implementation() const { return implementation_; }

  /// Whether the property is still violated, once callers leave at masked positions what they
  /// promise here, and split as they promise. What they never ask for is not.
  bool fails(const properties::Property& property, const Case& c) const;

 private:
  reference::Loss loss_;
  impl::Implementation implementation_;
};

/// Violations of one property for one cause.
struct Failure {
  const properties::Property* property = nullptr;
  std::string cause;
  std::vector<Case> cases;
  std::string said = {};  ///< of the first of them, where it gave no result

  std::string text() const;  ///< "finite_backward (3 cases: unbounded exponent)"
};

/// The cause that experiments on the first case tell, where any does.
std::string diagnosed(const AskedUnder& asked, const Failure& failure);

struct Failures {
  int cases = 0;     ///< that were asked
  int answered = 0;  ///< of those, with numbers
  std::string said;  ///< of the first that was not: what came instead
  std::vector<Failure> all;

  /// Of a case that it is to answer: numbers, or what is no result.
  void hear(const std::optional<properties::Violation>& no_result);

  Failure& add(const properties::Property& property, const std::string& cause,
               const std::vector<Case>& shown);
};

/// Whether a failure is seen without what is tried, too.
using Already = std::function<bool(const Failure&)>;

/// In each of its cases, as it is asked here.
Already seen_under(AskedUnder other);

/// The kinds of failures that are not seen already, in words.
std::vector<std::string> new_kinds(const AskedUnder& asked, const Failures& found,
                                   const Already& already);

inline constexpr std::uint64_t kTrialSeed = 30;

/// Which properties are asked: every one but the hardening ones, or of those the ones that look at
/// what the function makes of a case. Comparisons with other calls (rows permuted, a history, a
/// difference quotient) are most of the work and see rare numbers no sooner.
enum class Breadth { all, of_the_case };

inline constexpr int kHostileTrials = 64, kBenignTrials = 8;
inline constexpr int kTrials = kHostileTrials + kBenignTrials;

/// One of a trial's cases, which has kTrials.
Case trial_case(const AskedUnder& asked, Dtype dtype, std::uint64_t seed, int index);

/// Whether the property holds on every case of a trial of the brought function under that contract,
/// each of which is shown to `see`.
bool always_holds(
    const Brought& brought, const impl::Subject& subject, const properties::Property& property,
    const std::function<void(const Case&)>& see = [](const Case&) {});

/// What fails on a trial's cases, each of which `progress` is told. Throws ImplementationThrew,
/// SubjectError.
Failures failures(const AskedUnder& asked, Dtype dtype, Progress& progress,
                  std::uint64_t seed = kTrialSeed, Breadth breadth = Breadth::all);

}  // namespace lossgate::ci
