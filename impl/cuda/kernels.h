// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/implementation.h"

/// The kernels as implementations. `kernel` steps through the threads of each block on the host, as
/// a GPU would run them; `kernel_loop` runs the same program as a loop of one thread; `kernel_gpu`
/// is there in a build with CUDA on a machine with a GPU.
namespace lossgate::impl {

std::vector<Implementation> grpo_kernels();
std::vector<Implementation> value_clip_kernels();
std::vector<Implementation> log_prob_kernels();
std::vector<Implementation> jsd_kernels();
std::vector<Implementation> sparse_jsd_kernels();
std::vector<Implementation> linear_grpo_kernels();
std::vector<Implementation> linear_jsd_kernels();

}  // namespace lossgate::impl
