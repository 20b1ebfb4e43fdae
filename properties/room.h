// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/evaluation.h"

namespace lossgate::properties {

/// Whether the case leaves room (rule E8): half of the exponents of every format that it passes.
/// All inputs are finite; with M the product of one number of each field and option and of the
/// upstream gradient, the largest ones that count, where they exceed 1, and m that of the smallest,
/// n M^2 does not exceed the largest number and m^4 is no less than the smallest normal one, n the
/// most numbers in a field; and n r^2 does not exceed it either for any result r that is expected.
/// So what inputs and a literal no smaller than m make small enough to be a result had fitted, too.
bool has_room(Evaluation& evaluation);

/// Whether the loss is not finite where advice has numbers for all of the case, and room for them,
/// and the same is true of a case nearby, each number moved by half of its digits: then no input
/// overflows, and no rounding hit a singularity, but the function made what overflows.
bool overflows_by_itself(Evaluation& evaluation);

}  // namespace lossgate::properties
