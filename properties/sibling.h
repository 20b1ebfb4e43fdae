// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/evaluation.h"

namespace lossgate::properties {

/// Lets path parity compare with what this sound implementation gives for the case, where it gives
/// comparable values. Replaces an earlier sibling.
void give_sibling(CaseStudy& study, const impl::Implementation& sound);

}  // namespace lossgate::properties
