// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/spec/tensor.h"

/// Groups that a caller reshapes by their size (Field::even_groups): `rewards.view(-1, members)`.
namespace lossgate {

/// How many members each such group of `count` sequences has: of the divisors from 2 on the largest
/// that is at most `wanted`, or else the least.
std::int64_t members_of_even_groups(std::int64_t count, std::int64_t wanted);

/// Whether the numbers are those of such groups.
bool are_even_groups(const Tensor& group);

/// Makes them so, in the order in which they lie; what shares the first one's number says how many
/// members are wanted.
void make_groups_even(Tensor& group);

}  // namespace lossgate
