// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "corpora/case_id.h"
#include "corpora/format_error.h"
#include "corpora/header.h"
#include "reference/spec/case.h"

namespace lossgate::corpora {

/// The case as the text of a `.case` file (FORMAT.md): the same case always gives the same bytes.
/// Throws FormatError where the case does not fit its signature.
std::string encode(const Case& c, const LossSignature& signature);

/// The inverse: every bit of every field comes back. `file_name` is what errors call the text.
/// Nothing is allocated whose size the text only claims. Throws FormatError.
Case decode(std::string_view text, std::string_view file_name, const Lookup& lookup);

}  // namespace lossgate::corpora
