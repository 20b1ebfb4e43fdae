// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "impl/forms.h"
#include "impl/torch/catalog.h"
#include "impl/torch/chunks.h"
#include "impl/torch/divergence.h"
#include "impl/torch/slope.h"
#include "impl/torch/step.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor log_probs(const at::Tensor& logits, const at::Tensor& valid, double temperature) {
  return log_softmax(
      cooled(select(logits, valid, compute_type(logits.scalar_type())), temperature));
}

/// p log p
at::Tensor entropy_terms(const at::Tensor& l) { return weighed(l.exp(), l, l); }

/// Log-prob of the taken token and entropy, with the gradient w (delta - p) - e p (l + entropy).
struct LogProbAndEntropy : torch::autograd::Function<LogProbAndEntropy> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits,
                               const at::Tensor& label, const at::Tensor& valid,
                               double temperature) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor taken = label.to(at::kLong).masked_fill(valid.logical_not(), 0).unsqueeze(-1);
    const auto options = logits.options().dtype(compute_type(logits.scalar_type()));
    const at::Tensor log_prob = at::empty(valid.sizes(), options), entropy = log_prob.clone();
    for_each_chunk(logits, [&](const Chunk& of) {
      const at::Tensor l = log_probs(of(logits), of(valid), temperature);
      of(log_prob).copy_(l.gather(-1, of(taken)).squeeze(-1));
      of(entropy).copy_(entropy_terms(l).sum(-1).neg_());
    });
    context->save_for_backward({logits, taken, valid});
    context->saved_data["temperature"] = temperature;
    return {at::where(valid, log_prob, 0.0), at::where(valid, entropy, 0.0)};
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &taken = saved[1], &valid = saved[2];
    const double temperature = context->saved_data["temperature"].toDouble();
    // Where nothing arrives nothing leaves, whatever the logits.
    const at::Tensor live =
        valid.logical_and((upstream[0] != 0).logical_or_(upstream[1] != 0)).unsqueeze(-1);
    const at::Tensor by_logit = at::empty(logits.sizes(), logits.options());
    for_each_chunk(logits, [&](const Chunk& of) {
      const at::Tensor l = log_probs(of(logits), of(valid), temperature);
      const at::Tensor g = entropy_terms(l).mul_(of(upstream[1]).neg().unsqueeze(-1));
      g.scatter_add_(-1, of(taken), of(upstream[0]).unsqueeze(-1));
      of(by_logit).copy_(
          at::where(of(live), cooled_gradient(log_softmax_gradient(l, g), temperature), 0.0));
    });
    return {by_logit, {}, {}, {}};
  }
};

std::tuple<at::Tensor, at::Tensor> log_prob(const at::Tensor& logits, const at::Tensor& label,
                                            double temperature) {
  TORCH_CHECK(logits.dim() == 3, "logits must be [sequences, tokens, vocab], got ", logits.sizes());
  TORCH_CHECK(temperature > 0, "temperature must be positive, got ", temperature);
  const at::Tensor valid = valid_from_labels(label, logits.sizes().slice(0, 2), logits.size(2));
  const variable_list out = LogProbAndEntropy::apply(logits, label, valid, temperature);
  return {out[0], out[1]};
}

/// A weight of 0 silences its term, whatever the term.
at::Tensor weighted(const at::Tensor& terms, const at::Tensor& weight, const at::Tensor& valid) {
  const at::Tensor w = select(weight, valid, terms.scalar_type());
  return (terms * w).masked_fill(w == 0, 0);
}

StepOutputs log_prob_step(const StepInputs& in) {
  auto [taken, entropy] = log_prob(in["logits"], in["label"], in.spec().number("temperature"));
  const at::Tensor valid = in["label"] != kIgnoreLabel;
  const at::Tensor loss = (weighted(taken, in["log_prob_weight"], valid) +
                           weighted(entropy, in["entropy_weight"], valid))
                              .sum();
  return {.loss = loss, .values = {{"log_prob", taken}, {"entropy", entropy}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation log_prob_implementation() {
  return torch_implementation("log_prob", {"impl/torch/log_prob.cpp", kLine}, log_prob_step,
                              std::string(kSoftmaxForm));
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "log_prob(Tensor logits, Tensor label, *, float temperature=1.0) "
      "-> (Tensor log_prob, Tensor entropy)");
  library.impl("log_prob", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::log_prob));
}
