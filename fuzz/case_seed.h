// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "fuzz/choices.h"
#include "fuzz/profile.h"
#include "reference/spec/dtype.h"

namespace lossgate::fuzz {

/// The seed of the index-th case of a run, whoever draws it.
std::uint64_t case_seed(std::uint64_t root_seed, std::string_view loss_id, Dtype dtype,
                        std::uint64_t index);

/// What that case is drawn with. Those that are not benign take turns: of one dtype the first eight
/// cases are one, and so on; of all four the first two each, and the next two, as those of a dtype
/// begin elsewhere in their common order.
Choices case_choices(std::uint64_t root_seed, std::string_view loss_id, Dtype dtype,
                     Profile profile, std::uint64_t index);

}  // namespace lossgate::fuzz
