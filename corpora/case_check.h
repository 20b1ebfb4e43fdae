// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/spec/case.h"

namespace lossgate::corpora {

/// The number of elements, or nothing where an extent is negative or the product does not fit.
std::optional<std::int64_t> checked_count(const Extents& extents);

/// "[sequences 2, tokens 3]".
std::string shape_text(const std::vector<Axis>& axes, const Shape& shape);

/// What is expected of the field's dtype where this one is wrong, else empty. Fields that allow any
/// floating-point dtype share one, but that beside 16 bits some may be f32: `shared` is that of
/// those read before.
std::string wrong_dtype(const Field& field, Dtype dtype, std::optional<Dtype>& shared);

/// Throws FormatError where the case does not fit the signature in anything that the format says.
void check_case(const Case& c, const LossSignature& signature, std::string_view file);

/// The same for the tensors alone, given the case's shape.
void check_fields(const Case& c, const LossSignature& signature, std::string_view file);

}  // namespace lossgate::corpora
