// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "corpora/header.h"

namespace lossgate::corpora {

/// "sequences 2, tokens 3", in the order of the axes; "scalar" where there are none.
std::string write_shape(const Shape& shape);

/// Reads the key `shape`: every axis of the signature's fields, none that the loss does not have.
/// Extents that are in `known` must be these.
Shape read_shape(const Header& header, const LossSignature& signature, const Shape& known);

/// Throws where an axis along which no field has an element claims a length beyond kMaxEmptyExtent.
void check_empty_axes(const Header& header, const LossSignature& signature, const Shape& shape);

/// "whole", or "world 2; rank 0: 0 1; rank 1:; rank 0: 2", parts in the order of their calls.
std::string write_split(const Split& split);

/// Reads the value of the key `split`, in which each of the sequences must be dealt exactly once.
Split read_split(const Header& header, std::string_view text, std::int64_t sequences);

}  // namespace lossgate::corpora
