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

/// Along which axis, and of which dtype, a case is long, and whether every option has another value
/// than its default.
struct Length {
  Axis axis;
  Dtype dtype;
  bool other_options = false;
};

/// For each axis that is long in production (domains/shape.h: long_axes) one with the defaults and,
/// where there are options, one without, of the dtypes in turn.
std::vector<Length> lengths_of(const LossSignature& signature, std::span<const Dtype> dtypes);

/// A plain case that is so long. A few of many positions are masked, never the last; the last token
/// is taken; a hidden state is 0 but for a few of its coordinates, the last one too: what is lost
/// there shows. The same root seed gives the same case.
Case draw_long_case(std::uint64_t root_seed, const LossSignature& signature, const Length& length);

/// Along which axis a case is so long, if it is.
std::optional<Axis> long_axis_of(const LossSignature& signature, const Shape& shape);

}  // namespace lossgate::fuzz
