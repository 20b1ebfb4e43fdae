// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "corpora/header.h"
#include "reference/spec/case.h"

namespace lossgate::corpora {

/// For the tests of this folder: a signature that uses everything a signature can have, and cases
/// of signatures that nobody thought of. Values are raw bits, so every NaN and subnormal occurs.
using Random = std::mt19937_64;

/// The loss of the example in FORMAT.md.
LossSignature example_signature();

/// Two sequences of three tokens, with option and field values that are easy to find in a text.
Case example_case();

LossSignature random_signature(Random& random);
Case random_case(const LossSignature& signature, Random& random);

/// Finds the one signature by its id.
Lookup only(const LossSignature& signature);

}  // namespace lossgate::corpora
