// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lossgate::ci {

/// What every worker process does first: whoever started it decides what a Ctrl-C means, and
/// without that process there is nothing to work for.
void become_worker();

/// Sends text to whoever started this process.
void reply(const std::string& text);

/// The text without line ends.
std::string one_line(std::string text);

}  // namespace lossgate::ci
