// SPDX-License-Identifier: Apache-2.0
#include "fuzz/case_seed.h"

#include <algorithm>
#include <iterator>

#include "fuzz/hash.h"

namespace lossgate::fuzz {
namespace {

/// Cases of two dtypes that are asked alone, f64 and f32 mostly, are half a turn apart.
constexpr Dtype kOrder[] = {Dtype::f64, Dtype::f16, Dtype::f32, Dtype::bf16};
constexpr std::uint64_t kApart = Turn::kPlaces / std::size(kOrder);

}  // namespace

std::uint64_t case_seed(std::uint64_t root_seed, std::string_view loss_id, Dtype dtype,
                        std::uint64_t index) {
  return mix(mix(mix(root_seed ^ hash_of(loss_id)) + hash_of(name(dtype))) + index);
}

Choices case_choices(std::uint64_t root_seed, std::string_view loss_id, Dtype dtype,
                     Profile profile, std::uint64_t index) {
  const std::uint64_t seed = case_seed(root_seed, loss_id, dtype, index);
  if (profile == Profile::benign) return Choices(seed);
  const auto first = static_cast<std::uint64_t>(std::ranges::find(kOrder, dtype) - kOrder);
  return Choices(seed, {.seed = mix(mix(root_seed ^ hash_of(loss_id)) + index / Turn::kPlaces),
                        .place = (index + kApart * first) % Turn::kPlaces});
}

}  // namespace lossgate::fuzz
