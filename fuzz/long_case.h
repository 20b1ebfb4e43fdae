// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Cases as long as production's (rule E10).
namespace lossgate::fuzz {

/// Along which axis, and of which dtype, a case is long.
struct Length {
  Axis axis;
  Dtype dtype;
};

/// One for each axis that is long in production (domains/shape.h: long_axes), of the dtypes in
/// turn.
std::vector<Length> lengths_of(const LossSignature& signature, std::span<const Dtype> dtypes);

/// A plain case that is so long, and in which every position counts and the last token is taken, so
/// that what is lost at the end of it shows. The same root seed gives the same case.
Case draw_long_case(std::uint64_t root_seed, const LossSignature& signature, const Length& length);

/// Along which axis a case is so long, if it is.
std::optional<Axis> long_axis_of(const LossSignature& signature, const Shape& shape);

}  // namespace lossgate::fuzz
