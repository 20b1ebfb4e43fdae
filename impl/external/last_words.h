// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// What a process that is gone had written to standard error.
namespace lossgate::impl {

/// Where Python's traceback of a process that died says that it was, as `losses.py:80 in f`: in the
/// code of whoever brought the function, else in what that called. Empty where there is none.
std::string innermost_frame(std::string_view said);

/// Its end in one line: the last line, and the 19 before it; of a traceback the error and the
/// frame.
std::string last_words(std::string_view said);

}  // namespace lossgate::impl
