// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/profile.h"
#include "reference/spec/case.h"

namespace lossgate::fuzz {

Layout draw_layout(Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
