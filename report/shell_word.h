// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lossgate::report {

/// The text as one word of a POSIX shell: as it is where no letter means anything else there.
std::string shell_word(std::string_view text);

/// What the shell makes of the first word.
std::string first_shell_word(std::string_view line);

}  // namespace lossgate::report
