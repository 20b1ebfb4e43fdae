// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/implementation.h"

namespace lossgate::ci::evidence {

/// The same implementation, judged as if each of its operations might err ten times as much: what
/// would be missed if our bounds were that wide.
impl::Implementation with_tenfold_errors(const impl::Implementation& row);

}  // namespace lossgate::ci::evidence
