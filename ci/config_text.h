// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ci/identify.h"
#include "ci/promises.h"
#include "ci/proposal.h"
#include "ci/recognition.h"

namespace lossgate::ci {

/// "beta = 0.1, level = \"token\"": with quotes as a lossgate.toml has them, or as people read it.
std::string options_text(const OptionValues& options, const char* equals, bool quoted);

std::string reductions_text(const std::vector<Reduction>& reductions, const char* quote);

/// The lossgate.toml of a function that was recognised: what it keeps beyond the least is asked,
/// what it does not stands there as a comment, and so does what only its trainer can promise: of a
/// batch that is empty, and of parts.
std::string config_text(const IdentifyOptions& options, const Recognition& match,
                        const std::vector<Promise>& promises,
                        const std::vector<Proposal>& of_trainer);

}  // namespace lossgate::ci
