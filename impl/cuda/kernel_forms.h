// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/cuda/host_forms.h"
#include "impl/cuda/kernels.h"
#ifdef LOSSGATE_CUDA
#include "impl/cuda/device_form.h"
#endif

namespace lossgate::impl {

struct KernelProgram {
  std::string_view loss;
  Source source;
  std::string_view form = "";       ///< of the loss's forms
  SumOrder sums = SumOrder::lanes;  ///< online where a softmax is taken as the row is read
  Trainer trainer = {};
};

/// Computes in f32 whatever is stored; `lanes` is the width of its sums.
Implementation kernel_implementation(const KernelProgram& program, std::string name, int lanes,
                                     Step step);

/// All forms of a program: run(form, micro_batch) lays out the arrays and asks the form for the
/// loss.
template <class Run>
std::vector<Implementation> kernel_implementations(const KernelProgram& program, Run run) {
  const auto step_of = [&](auto form) -> Step {
    return [run, form](MicroBatch& micro_batch) { return run(form, micro_batch); };
  };
  std::vector<Implementation> all;
  all.push_back(
      kernel_implementation(program, "kernel", kSumLanes, step_of(HostForm<SteppedBlocks>{})));
  all.push_back(
      kernel_implementation(program, "kernel_loop", kPack, step_of(HostForm<LoopBlocks>{})));
#ifdef LOSSGATE_CUDA
  if (has_gpu()) {
    all.push_back(kernel_implementation(program, "kernel_gpu", kSumLanes, step_of(DeviceForm{})));
    all.back().device = "cuda";
  }
#endif
  return all;
}

}  // namespace lossgate::impl
