// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ci/brought.h"
#include "properties/property.h"

/// Functions whose losses are averaged over micro-batches or ranks, and are right where these are
/// as large as each other alone (reference/spec/even_parts.h).
namespace lossgate::ci {

/// What callers promise then.
struct EvenParts {
  bool parts = false;  ///< micro-batches of a rank hold equally many sequences that count
  bool ranks = false;  ///< ranks do

  /// The lines of a contract: "uneven_parts = false".
  std::vector<std::string> lines() const;
  /// What must be true of the trainer for them to be right.
  std::string price() const;
  /// The same subject with these lines; nothing where it has one already.
  std::optional<impl::Subject> promised(impl::Subject subject) const;
};

/// Those that may make the subject's splits right, which ask least first: of what its trainer
/// averages, or it does by itself, as it is told how many there are.
std::vector<EvenParts> even_parts_of(const Brought& brought);

/// Whether the property holds on all of a trial's cases once callers promise that, and some of them
/// are such as the promise is about: in a few cases tokens, too, may be as many in each part.
bool is_right_of(const Brought& brought, const impl::Subject& promised, const EvenParts& even,
                 const properties::Property& property);

}  // namespace lossgate::ci
