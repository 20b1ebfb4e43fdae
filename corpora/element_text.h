// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/spec/dtype.h"

namespace lossgate::corpora {

/// Appends the shortest decimal that reads back to exactly these bits, or `inf`, `-inf`, `nan` (the
/// canonical quiet NaN), `nan(0x7fc01234)` (any other), `-0`.
void append_element(std::string& text, Dtype dtype, const std::byte* bits);

/// Reads one element, rounding once from the exact decimal value. Nothing where the text is no such
/// value: a number that the dtype cannot hold, a fraction for an integer type, a NaN with the wrong
/// number of digits. A number that would round to infinity, or to zero without being zero, is one
/// that the dtype cannot hold.
bool parse_element(Dtype dtype, std::string_view text, std::byte* bits);

/// "a number within the range of f16, inf, -inf, nan or nan(0x....)".
std::string expected_element(Dtype dtype);

/// The same for numbers that are no tensor elements.
std::string number_text(double value);
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace lossgate::corpora
