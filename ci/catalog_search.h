// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/brought.h"
#include "ci/identify.h"
#include "ci/recognition.h"

namespace lossgate::ci {

/// What a function is among the losses of the catalog, the likest first: as its parameters say, or
/// in other ways where no loss is found like that. Where none can be asked, `complaint` says why.
/// Throws InputError where the function is not named as it has to be.
struct Searched {
  std::vector<Recognition> found;
  std::string complaint;
  Hosts hosts;  ///< in which it was asked: another one takes seconds to import torch
};

Searched search_catalog(const IdentifyOptions& options);

}  // namespace lossgate::ci
