// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reference/spec/case.h"

namespace lossgate::corpora {

/// 16 hexadecimal digits that name the case: a hash (FNV-1a, 64 bits) of everything that can change
/// a result, and of nothing else. Title, story and the like do not count. Stable over versions and
/// machines.
std::string case_id(const Case& c);

}  // namespace lossgate::corpora
