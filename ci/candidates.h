// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "impl/external/session.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// What a function may be: a loss of the catalog with one choice of everything that it cannot be
/// told.
struct Candidate {
  const reference::Loss* loss = nullptr;
  Reduction reduction = Reduction::none;
  std::vector<std::pair<std::string, OptionValue>> options;  ///< that do not reach it
};

/// How a candidate compares with the function on cases without an edge.
struct Likeness {
  Candidate candidate;
  int place = 0;        ///< among the candidates
  int cases = 0;        ///< compared
  int equal = 0;        ///< of these, loss and all gradients
  int hostile = 0;      ///< cases on an edge that are equal, where only they can tell
  double factor = 0.0;  ///< function = factor x candidate on every case; 0 where there is none
  bool by_positions = false;  ///< the factor is that of all positions for the valid ones
};

/// Every choice of the options and the reduction that do not reach the function; the plainest,
/// which leave terms and clamps away, come first.
std::vector<Candidate> candidates(const reference::Loss& loss, const impl::Greeting& greeting);

/// Compares all of them, on a few benign cases in the dtype, and those that benign cases cannot
/// tell apart on hostile ones; the likest come first.
std::vector<Likeness> compare(const std::vector<Candidate>& all, const impl::Subject& subject,
                              const std::shared_ptr<impl::Session>& session, Dtype dtype);

}  // namespace lossgate::ci
