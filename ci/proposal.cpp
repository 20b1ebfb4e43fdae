// SPDX-License-Identifier: Apache-2.0
#include "ci/proposal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "ci/contract_line.h"
#include "ci/variant.h"
#include "properties/property.h"

namespace lossgate::ci {
namespace {

/// A file has one such line, so one is proposed that is right for all kinds that one explains.
void join_masked(const Brought& brought, const std::vector<Failure>& kinds, ContractTrial& trial) {
  if (std::ranges::count_if(trial.proposals, &Proposal::of_masked) < 2) return;
  auto joint = masked_line_against(brought, kinds);
  if (!joint) return;
  for (const Failure& kind : kinds) joint->relaxes.push_back(kind.text());
  std::erase_if(trial.proposals, &Proposal::of_masked);
  trial.proposals.push_back(*std::move(joint));
}

void explain(const Brought& brought, const std::vector<Failure>& kinds, ContractTrial& trial) {
  // Of a function that gives other bits each time, nothing is shown by what vanishes.
  const bool repeatable = !trial.failing.contains(std::string(kDeterminism));
  std::vector<Failure> by_masked;
  for (const Failure& kind : kinds) {
    std::optional<Proposal> found;
    if (repeatable || kind.property->name == kDeterminism) {
      found = line_against(brought, {&kind, 1});
    }
    if (!found) {
      const bool tell = trial.found.answered > 0 && !kind.said.empty();
      trial.unexplained.push_back(kind.text() + (tell ? "\n    the first: " + kind.said : ""));
      continue;
    }
    if (found->of_masked()) by_masked.push_back(kind);
    auto known = std::ranges::find(trial.proposals, found->line, &Proposal::line);
    if (known == trial.proposals.end()) {
      known = trial.proposals.insert(trial.proposals.end(), std::move(*found));
    }
    known->relaxes.push_back(kind.text());
  }
  join_masked(brought, by_masked, trial);
}

}  // namespace

bool Proposal::of_masked() const {
  return line.starts_with(std::string(kContractTable) + " masked = ");
}

std::vector<std::string> Proposal::lines() const {
  std::vector<std::string> all;
  std::istringstream text(line);
  for (std::string one; std::getline(text, one);) all.push_back(one);
  return all;
}

std::optional<Proposal> propose_empty(const Brought& brought, const std::vector<Failure>& kinds) {
  std::optional<Proposal> proposal;
  for (const Failure& kind : kinds) {
    if (kind.property->name == kDeterminism) return std::nullopt;  // nothing is shown, as above
    auto found = empty_line_against(brought, {&kind, 1});
    if (!found || (proposal && proposal->line != found->line)) continue;
    if (!proposal) proposal = std::move(found);
    proposal->relaxes.push_back(kind.text());
  }
  return proposal;
}

std::optional<Proposal> propose_even_parts(const Brought& brought,
                                           const std::vector<Failure>& kinds) {
  for (const Failure& kind : kinds) {
    if (kind.property->name == kDeterminism) return std::nullopt;
  }
  for (const Failure& kind : kinds) {
    auto found = even_line_against(brought, {&kind, 1});
    if (!found) continue;
    found->relaxes.push_back(kind.text());
    return found;
  }
  return std::nullopt;
}

ContractTrial try_contract(const Brought& brought) {
  ContractTrial trial;
  try {
    const AskedUnder asked(brought, brought.subject);
    Progress progress(kTrials, 0);
    trial.found = failures(asked, brought.dtypes.front(), progress);
    progress.finish();
    for (const Failure& kind : trial.found.all) {
      trial.failing[kind.property->name] += static_cast<int>(kind.cases.size());
    }
    explain(brought, trial.found.all, trial);
  } catch (const ImplementationThrew& error) {
    trial.trouble = error.what();
  } catch (const impl::SubjectError& error) {
    trial.trouble = error.what();
  }
  return trial;
}

void print_proposal(const Proposal& proposal) {
  fmt::print("  proposal: {}\n    right only if {}\n",
             fmt::join(proposal.lines(), "\n       and: "), proposal.right);
  if (!proposal.seen.empty()) fmt::print("    it said: {}\n", proposal.seen);
  const bool of_contract = proposal.line.starts_with(kContractTable);
  for (const std::string& relaxed : proposal.relaxes) {
    fmt::print("    then {}: {}\n", of_contract ? "no longer asked" : "right", relaxed);
  }
}

}  // namespace lossgate::ci
