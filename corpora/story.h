// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lossgate::corpora {

/// The paragraphs of a story: of the case of findings one for each of them.
std::vector<std::string> paragraphs_of(std::string_view story);

/// Of two texts of one case, as `encode` writes them, the first, with what the second's story says
/// beside its own: each paragraph once. Where one of them has no story, or is no such text, the
/// other is given back as it is.
std::string with_story_of(std::string_view text, std::string_view other);

}  // namespace lossgate::corpora
