// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "impl/implementation.h"
#include "properties/property.h"
#include "regressions/expectation.h"

namespace lossgate::regressions {

/// What one property says of one implementation on the case.
struct Answer {
  const properties::Property* property = nullptr;
  properties::Outcome outcome;
  std::optional<properties::Finding> finding;  ///< where violated
  bool expected = false;                       ///< the case says that this must be violated
};

struct Reply {
  const impl::Implementation* implementation = nullptr;
  std::string unsupported;  ///< why the case cannot be asked, if so
  std::string failure;      ///< what the call threw, if it did
  std::vector<Answer> answers;
  LossResult actual;  ///< on the whole, unsplit case; of a large one, its small outputs
  LossResult split;   ///< accumulated over the split, where split_invariance compared it
};

/// One entry of one output as an implementation gave it, against what is expected.
struct Sight {
  const impl::Implementation* implementation = nullptr;
  std::vector<std::byte> bits;
  double actual = 0.0;
  double ulp_error = 0.0;  ///< in ulps of the output's dtype at the expected value
  double bound = 0.0;      ///< largest difference that the rules accept for its arithmetic
};

/// All implementations side by side at one entry.
struct Spot {
  properties::Place place;
  bool split = false;  ///< results over the split are shown, not those of the whole case
  Dtype dtype = Dtype::f32;
  reference::Real expected = 0.0L;
  std::vector<Sight> sights;
};

/// Everything that one case shows.
struct Replay {
  std::optional<Refusal> refusal;  ///< that a sound one owes this case, of those asked
  std::vector<Reply> replies;
  std::optional<Spot> spot;  ///< where the first violation is, else the loss

  /// A sound implementation violates something, or an expected violation is not there.
  bool failed() const;
  /// Whether any question had another answer than that it was skipped.
  bool answered() const;
};

/// Asks the properties of every implementation, in the given order. Faulty implementations are
/// asked without precedence. Each has a sound sibling for path parity, given or not. `expected`
/// marks answers and must name given ones to be checked. `before`, if any, hears of each question;
/// of a large case no gradient is kept, and a spot in one is asked for again.
using Asking = std::function<void(const impl::Implementation&, const properties::Property&)>;
Replay replay(const reference::Loss& loss, const Case& c,
              const std::vector<const impl::Implementation*>& implementations,
              const std::vector<const properties::Property*>& properties,
              const std::vector<Expectation>& expected, const Asking& before = nullptr);

/// A case that was replayed again and again.
struct Replays {
  Replay shown;  ///< the first that failed, else the first that was answered, else the first
  std::int64_t held = 0, failed = 0, first_failure = 0;  ///< counted from 1; 0: there is none
};
Replays replays(std::int64_t times, const std::function<Replay(std::int64_t time)>& once);

/// |actual - expected| in units of the spacing of the format at `expected`.
double ulp_error(Dtype dtype, double actual, reference::Real expected);

/// torch.allclose(actual, expected) as it is called by default, which takes no NaN and has one
/// infinity equal to itself.
bool allclose(double actual, reference::Real expected);

}  // namespace lossgate::regressions
