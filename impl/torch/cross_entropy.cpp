// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/divergence.h"
#include "impl/torch/row_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

struct CrossEntropyOptions {
  double label_smoothing = 0.0, z_loss = 0.0;
};

/// The slope is p (1 + 2 z logsumexp) less the target, in which the taken token's 1 comes last.
TermsAndSlope cross_entropy_terms(const at::Tensor& x, const at::Tensor& taken,
                                  const CrossEntropyOptions& options) {
  const double a = options.label_smoothing, share = a / static_cast<double>(x.size(-1));
  const at::Tensor l = log_softmax(x);
  at::Tensor value =
      a == 1.0 ? at::zeros_like(taken, x.options()) : l.gather(-1, taken).mul_(a - 1.0);
  if (a > 0.0) value = value.sub_((l * share).sum(-1, /*keepdim=*/true));
  at::Tensor slope = l.exp();
  if (options.z_loss > 0.0) {
    const at::Tensor whole = x.logsumexp(-1, /*keepdim=*/true);
    value = value.add_((whole * options.z_loss).mul_(whole));
    slope = slope + slope * (whole * (2.0 * options.z_loss));
  }
  slope = slope.sub_(share).scatter_add_(-1, taken, at::full_like(value, a - 1.0));
  return {value.squeeze(-1), slope};
}

std::tuple<at::Tensor, at::Tensor> cross_entropy(const at::Tensor& logits, const at::Tensor& label,
                                                 const CrossEntropyOptions& options,
                                                 const ReductionPlan& plan) {
  TORCH_CHECK(logits.dim() == 3, "logits must be [sequences, tokens, vocab], got ", logits.sizes());
  TORCH_CHECK(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
              "label_smoothing must lie in [0, 1], got ", options.label_smoothing);
  TORCH_CHECK(options.z_loss >= 0.0, "z_loss must not be negative, got ", options.z_loss);
  const at::Tensor valid = valid_from_labels(label, logits.sizes().slice(0, 2), logits.size(2));
  const at::Tensor taken = label.to(at::kLong).masked_fill(valid.logical_not(), 0).unsqueeze(-1);
  return row_loss(logits, valid, plan, [&](const at::Tensor& x, const Chunk& of) {
    return cross_entropy_terms(x, of(taken), options);
  });
}

std::tuple<at::Tensor, at::Tensor> cross_entropy_operator(
    const at::Tensor& logits, const at::Tensor& label, std::int64_t total_tokens,
    c10::string_view reduction, double label_smoothing, double z_loss, std::int64_t num_items) {
  return cross_entropy(logits, label, {.label_smoothing = label_smoothing, .z_loss = z_loss},
                       reduction_plan(reduction, total_tokens, 0, 1, num_items));
}

StepOutputs cross_entropy_step(const StepInputs& in) {
  auto [loss, per_token] = cross_entropy(in["logits"], in["label"],
                                         {.label_smoothing = in.spec().number("label_smoothing"),
                                          .z_loss = in.spec().number("z_loss")},
                                         in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation cross_entropy_implementation() {
  return torch_implementation("cross_entropy", {"impl/torch/cross_entropy.cpp", kLine},
                              cross_entropy_step, std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "cross_entropy(Tensor logits, Tensor label, *, int total_tokens, "
      "str reduction='token_mean', float label_smoothing=0.0, float z_loss=0.0, int num_items=1) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("cross_entropy", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::cross_entropy_operator));
}
