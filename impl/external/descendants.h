// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

/// Who belongs to a subject's process. Groups and sessions can be left and parents end; a variable
/// of the environment is handed down to everything that is started.
namespace lossgate::impl {

inline constexpr std::string_view kMarkVariable = "LOSSGATE_SUBJECT=";

/// The variable with a value that no other process has.
std::string new_mark();

/// Ends every process that carries the mark.
void end_marked(const std::string& mark);

/// Ends what carries any mark that this process of ours has made.
void end_what_is_left_of(pid_t starter);

}  // namespace lossgate::impl
