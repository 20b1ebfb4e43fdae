// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ci/promises.h"
#include "ci/proposal.h"

/// Which line of a lossgate.toml would make failures of a brought function go, all of these kinds:
/// tried on some cases of each. Nothing where none would.
namespace lossgate::ci {

/// What gives other bits each time fails by this; of the rest nothing is shown then.
inline constexpr std::string_view kDeterminism = "determinism";

/// What a split fails by.
inline constexpr std::string_view kSplitInvariance = "split_invariance";

/// The first that does, of those that ask least.
std::optional<Proposal> line_against(const Brought& brought, std::span<const Failure> kinds);

/// What callers leave at masked positions, of as few fields as will do.
std::optional<Proposal> masked_line_against(const Brought& brought, std::span<const Failure> kinds);

/// What the function makes of a batch in which nothing counts.
std::optional<Proposal> empty_line_against(const Brought& brought, std::span<const Failure> kinds);

/// That parts are as large as each other, where they are averaged, in as few lines as will do.
std::optional<Proposal> even_line_against(const Brought& brought, std::span<const Failure> kinds);

}  // namespace lossgate::ci
