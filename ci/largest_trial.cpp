// SPDX-License-Identifier: Apache-2.0
#include "ci/largest_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ci/promises.h"
#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

/// Far beyond what a trainer has, down to what a healthy run has.
constexpr double kLimits[] = {1e18, 1e9, 1e6, kLargestOrdinary};

/// The subject whose callers keep that field so, or all where there is no name.
impl::Subject kept_small(const Brought& brought, double limit, const std::string& only) {
  impl::Subject subject = brought.subject;
  for (const Field& field : brought.loss.signature.fields) {
    if (!impl::holds_numbers(field) || !(only.empty() || field.name == only)) continue;
    subject.largest[field.name] = std::min(limit, field.largest);
  }
  return subject;
}

}  // namespace

std::optional<Proposal> try_largest(const Brought& brought,
                                    const std::function<bool(const impl::Subject&)>& holds) {
  for (const double limit : kLimits) {
    if (!holds(kept_small(brought, limit, ""))) continue;
    for (const Field& field : brought.loss.signature.fields) {
      if (!impl::holds_numbers(field) || !holds(kept_small(brought, limit, field.name))) continue;
      return Proposal{
          fmt::format("{} largest = {{ {} = {:g} }}", kContractTable, field.name, limit),
          fmt::format("callers keep {} within {:g} of 0 where it counts", field.name, limit),
          "",
          {}};
    }
    return Proposal{fmt::format("{} largest = {:g}", kContractTable, limit),
                    fmt::format("callers keep all numbers that count within {:g} of 0", limit),
                    "",
                    {}};
  }
  return std::nullopt;
}

}  // namespace lossgate::ci
