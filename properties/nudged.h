// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"

namespace lossgate::properties {

/// Whose digits are moved: those of a field's largest number, at whose scale sums are rounded, or
/// those of each number. The first saturates a softmax where another row holds -3e6, and a
/// saturated function feels nothing. Under the second a 0 stays one, where it is no log.
enum class Scale { of_field, of_number };

/// The case with each number of the case's format moved by up to `relative` of the scale, to either
/// side; of logs, which are rounded at the scale of the numbers they are differences of, by up to
/// `relative` at least. The same each time.
Case nudged(const LossSignature& signature, Case c, double relative, Scale scale);

}  // namespace lossgate::properties
