// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ci/asked_under.h"
#include "ci/brought.h"

namespace lossgate::ci {

/// A line for a lossgate.toml without which something fails, and with which it is right, or, of a
/// contract, not asked.
struct Proposal {
  /// With its table: `[subject.contract] empty = "error"`; of several that go together each.
  std::string line;
  std::string right;                 ///< what must be true of the trainer for the line to be
  std::string seen;                  ///< what the function said, where it said something
  std::vector<std::string> relaxes;  ///< "empty_is_zero (12 cases)"

  bool of_masked() const;                  ///< what callers leave at masked positions
  std::vector<std::string> lines() const;  ///< those that go together, each with its table
};

/// A subject on a few cases: what fails, and what of it looks like a contract.
struct ContractTrial {
  Failures found;                      ///< under its own contract
  std::map<std::string, int> failing;  ///< property to cases
  std::vector<Proposal> proposals;
  std::vector<std::string> unexplained;  ///< "finite_backward (3 cases: unbounded exponent)"
  std::string trouble;                   ///< it ended, hung or could not be asked
};

/// Asks the subject under its own contract; then, where something fails, under contracts that are
/// stricter with its callers by one line, to see whether the failure is still there.
ContractTrial try_contract(const Brought& brought);

/// The line for what the subject makes of a batch in which nothing counts, where that is what these
/// failures are, some of them.
std::optional<Proposal> propose_empty(const Brought& brought, const std::vector<Failure>& kinds);

/// The same of what is averaged, where the subject's parts are to be as large as each other.
std::optional<Proposal> propose_even_parts(const Brought& brought,
                                           const std::vector<Failure>& kinds);

void print_proposal(const Proposal& proposal);

}  // namespace lossgate::ci
