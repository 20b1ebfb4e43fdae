// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/property.h"

namespace lossgate::ci {

/// The simplest case that shows a finding, and all that is violated on it.
struct Simplest {
  Case c;
  std::vector<std::string> shows;
};

/// Makes the case of a finding simple; the finding gets what is seen there: its violation, how far
/// it must go, and why it is. Nothing, and the finding stays, where it does not show again alone.
std::optional<Simplest> simplest(properties::Finding& finding, const reference::Loss& loss,
                                 const impl::Implementation& subject,
                                 const properties::Property& property, const Case& c,
                                 const std::vector<const properties::Property*>& asked);

}  // namespace lossgate::ci
