// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// Sound: the eager program, in one step; with its advantages scaled over the mini-batch; and under
/// a mean all-reduce that is undone.
std::vector<Implementation> eager_grpo_implementations();

/// The eager program with one fault each.
std::vector<Implementation> faulty_grpo_implementations();

/// The eager program with the gradient of the first valid token off by this factor, relative.
Implementation grpo_with_gradient_error(double relative);

}  // namespace lossgate::impl
