// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/fused/fused.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "impl/cuda/fused/call_arrays.h"
#include "impl/cuda/host_forms.h"
#include "impl/cuda/named_arrays.h"
#ifdef LOSSGATE_CUDA
#include "impl/cuda/gpu.h"
#endif

namespace lossgate::impl {
namespace {

/// Computed where the memory lies.
template <class Arrays>
void start(const lossgate_fused_call& call, const CallArrays& named, const Arrays& arrays) {
  if (call.device < 0) {
    *named.loss() = HostForm<LoopBlocks>::loss(arrays);
    return;
  }
#ifdef LOSSGATE_CUDA
  const OnGpu there(call.device);
  launch(arrays, named.loss(), static_cast<Stream>(call.stream));
#else
  throw Refusal{.argument = "device",
                .message = "is a GPU, and this library was built without the form for one"};
#endif
}

/// Rows of logits in whatever they are stored; what is formed of them lies between kernels.
template <class Stored>
LogitsGrpoArrays<Stored> logits_grpo(const CallArrays& named) {
  LogitsGrpoArrays<Stored> arrays = logits_grpo_arrays<Stored>(named);
  arrays.logits = named.field<Stored>("logits");
  arrays.gradient = named.gradient<Stored>("logits", {});
  return arrays;
}

template <class Stored>
void run(const lossgate_fused_call& call, const CallArrays& named) {
  const std::string& loss = named.spec().loss;
  if (loss == "grpo") start(call, named, grpo_arrays<Stored>(named));
  if (loss == "value_clip") start(call, named, value_arrays<Stored>(named));
  if (loss == "log_prob") start(call, named, log_prob_arrays<Stored>(named));
  if (loss == "jsd") start(call, named, jsd_arrays<Stored>(named));
  if (loss == "sparse_jsd") start(call, named, sparse_jsd_arrays<Stored>(named));
  if (loss == "logits_grpo") start(call, named, logits_grpo<Stored>(named));
}

struct FusedLoss {
  std::string_view name;
  const char* leaf;    ///< the field that has a gradient, in whose format the others are stored
  const char* memory;  ///< see lossgate_fused_memory
};

constexpr FusedLoss kLosses[] = {
    {"grpo", "log_prob", ""},
    {"value_clip", "value", ""},
    {"log_prob", "logits", ""},
    {"jsd", "student_logits", ""},
    {"sparse_jsd", "student_logits", ""},
    {"logits_grpo", "logits", "log_prob log_prob_gradient shift log_sum"},
};

const FusedLoss* find(const char* name) {
  const auto* const found = std::ranges::find(kLosses, name ? name : "", &FusedLoss::name);
  return found == std::end(kLosses) ? nullptr : found;
}

void run(const lossgate_fused_call& call) {
  const FusedLoss* const loss = find(call.loss);
  if (!loss) throw Refusal{.argument = "loss", .message = "is not the name of a fused one"};
  const CallArrays named(call);
  switch (named.dtype_of(loss->leaf)) {
    case Dtype::bf16:
      return run<Bf16>(call, named);
    case Dtype::f16:
      return run<F16>(call, named);
    default:
      return run<float>(call, named);
  }
}

void say(lossgate_fused_call& call, const std::string& message) {
  const std::size_t length = std::min(message.size(), sizeof call.message - 1);
  message.copy(call.message, length);
  call.message[length] = '\0';
}

}  // namespace
}  // namespace lossgate::impl

int lossgate_fused(lossgate_fused_call* call) {
  using namespace lossgate::impl;
  try {
    run(*call);
    return 0;
  } catch (const lossgate::Refusal& refusal) {
    say(*call, refusal.argument + " " + refusal.message);
  } catch (const std::exception& error) {
    say(*call, error.what());
  }
  return 1;
}

const char* lossgate_fused_memory(const char* loss) {
  const auto* const found = lossgate::impl::find(loss);
  return found ? found->memory : nullptr;
}

int lossgate_fused_has_device_form() {
#ifdef LOSSGATE_CUDA
  return 1;
#else
  return 0;
#endif
}
