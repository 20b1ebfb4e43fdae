// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "impl/implementation.h"
#include "impl/trainer.h"

/// The kernels' block programs on the host. `kernel` steps through the threads of each block as a
/// GPU would run them; `kernel_loop` runs the same program as a loop of one thread.
namespace lossgate::impl {

/// A program's two forms of one step.
struct KernelSteps {
  Step stepped, loop;
};

struct KernelProgram {
  std::string_view loss;
  Source source;
  std::string_view form = "";       ///< of the loss's forms
  SumOrder sums = SumOrder::lanes;  ///< online where a softmax is taken as the row is read
  const Trainer trainer = {};
};

/// Both forms, which compute in f32 whatever is stored.
std::vector<Implementation> kernel_implementations(const KernelProgram& program,
                                                   const KernelSteps& steps);

std::vector<Implementation> grpo_kernels();
std::vector<Implementation> value_clip_kernels();
std::vector<Implementation> log_prob_kernels();
std::vector<Implementation> jsd_kernels();
std::vector<Implementation> sparse_jsd_kernels();
std::vector<Implementation> linear_grpo_kernels();

}  // namespace lossgate::impl
