// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace lossgate::ci {

/// What to do about a file that is there already. A device or a pipe is written to, always.
enum class Present { refuse, overwrite };

/// Before the work for it: throws InputError where a file is there that nobody said to overwrite,
/// MachineError where none can be written. `flag` is how to name another.
void check_target(const std::filesystem::path& path, Present present,
                  std::string_view flag = "--out");

}  // namespace lossgate::ci
