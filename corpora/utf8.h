// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace lossgate::corpora {

/// How many leading bytes are well-formed UTF-8 (no overlong forms, no surrogates).
std::size_t valid_utf8_prefix(std::string_view text);

inline bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

}  // namespace lossgate::corpora
