// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reference/spec/case.h"

namespace lossgate::ci {

/// Something that losses fail at, and whether a case shows it.
struct Trait {
  std::string name;
  bool shown = false;
};

/// All traits, in the same order for every case.
std::vector<Trait> traits_of(const LossSignature& signature, const Case& c);

}  // namespace lossgate::ci
