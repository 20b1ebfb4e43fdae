// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/step.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

#include "impl/other_data.h"
#include "impl/torch/tensors.h"

namespace lossgate::impl {
namespace {

const at::Tensor* find(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       std::string_view name) {
  for (const auto& [candidate, tensor] : tensors) {
    if (candidate == name) return &tensor;
  }
  return nullptr;
}

std::vector<at::Tensor> leaves_of(const MicroBatch& micro_batch, const StepInputs& in) {
  std::vector<at::Tensor> leaves;
  for (const Field& field : micro_batch.signature.fields) {
    if (in[field.name].requires_grad()) leaves.push_back(in[field.name]);
  }
  return leaves;
}

std::vector<at::Tensor> gradients(const at::Tensor& loss, const std::vector<at::Tensor>& leaves,
                                  double upstream, bool keep_graph = false) {
  if (leaves.empty()) return {};
  return torch::autograd::grad({loss}, leaves, {at::full({}, upstream, loss.options())},
                               keep_graph);
}

/// What a function returned, and the gradients that were asked for, in the order of their fields.
struct Stepped {
  StepOutputs out;
  std::vector<at::Tensor> slopes;
};

Stepped alone(Forward forward, MicroBatch& micro_batch) {
  const StepInputs in(micro_batch);
  StepOutputs out = forward(in);
  auto slopes = gradients(out.loss, leaves_of(micro_batch, in), micro_batch.part.upstream);
  return {std::move(out), std::move(slopes)};
}

Stepped with_calls_between(Forward forward, MicroBatch& micro_batch, History history) {
  const StepInputs in(micro_batch);
  StepOutputs out = forward(in);
  std::vector<StepOutputs> others;  // kept for as long as a caller may want their backward
  const bool trained = history == History::two_forwards;
  for (int calls = trained ? 2 : 1; calls > 0; --calls) {
    const at::AutoGradMode enabled(trained);
    others.push_back(on_other_data(micro_batch, [&](MicroBatch& other) {
      if (!trained) other.part.grad_mode = GradMode::none;
      return forward(StepInputs(other));
    }));
  }
  auto slopes = gradients(out.loss, leaves_of(micro_batch, in), micro_batch.part.upstream);
  return {std::move(out), std::move(slopes)};
}

/// Of two forwards the later one goes back first: what its backward returned is there while the
/// backward of the other data runs.
Stepped summed(Forward forward, MicroBatch& micro_batch) {
  return on_other_data(micro_batch, [&](MicroBatch& other) {
    const StepInputs other_in(other), in(micro_batch);
    const StepOutputs other_out = forward(other_in);
    StepOutputs out = forward(in);
    std::vector<at::Tensor> leaves = leaves_of(micro_batch, in);
    const std::size_t asked = leaves.size();
    for (at::Tensor& leaf : leaves_of(other, other_in)) leaves.push_back(std::move(leaf));
    auto slopes = gradients(out.loss + other_out.loss, leaves, micro_batch.part.upstream);
    slopes.resize(asked);
    return Stepped{std::move(out), std::move(slopes)};
  });
}

/// A graph that goes back once only, and says so, answers by a step alone.
Stepped with_backward_twice(Forward forward, MicroBatch& micro_batch) {
  const StepInputs in(micro_batch);
  StepOutputs out = forward(in);
  const std::vector<at::Tensor> leaves = leaves_of(micro_batch, in);
  const double upstream = micro_batch.part.upstream;
  try {
    const auto first = gradients(out.loss, leaves, upstream, true);
    auto second = gradients(out.loss, leaves, upstream);
    return {std::move(out), std::move(second)};
  } catch (const c10::Error&) {
    return alone(forward, micro_batch);
  }
}

/// The leaves at other values: those of other data; what all sequences share, in another order.
std::vector<at::Tensor> other_values(MicroBatch& micro_batch) {
  return on_other_data(micro_batch, [](MicroBatch& other) {
    const StepInputs in(other);
    std::vector<at::Tensor> values;
    for (const Field& field : other.signature.fields) {
      const at::Tensor value = in[field.name].detach();
      if (!in[field.name].requires_grad()) continue;
      values.push_back(has_rows(field.axes) || value.dim() == 0 ? value.clone() : value.flip(0));
    }
    return values;
  });
}

void write(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& leaves) {
  const at::AutoGradMode disabled(false);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].copy_(values[i]);
}

/// As an optimizer leaves them: whoever keeps what it made of a tensor answers for old values.
Stepped after_an_update(Forward forward, MicroBatch& micro_batch) {
  const StepInputs in(micro_batch);
  const std::vector<at::Tensor> leaves = leaves_of(micro_batch, in);
  std::vector<at::Tensor> meant;
  for (const at::Tensor& leaf : leaves) meant.push_back(leaf.detach().clone());
  write(other_values(micro_batch), leaves);
  gradients(forward(in).loss, leaves, micro_batch.part.upstream);
  write(meant, leaves);
  StepOutputs out = forward(in);
  auto slopes = gradients(out.loss, leaves, micro_batch.part.upstream);
  return {std::move(out), std::move(slopes)};
}

Stepped stepped(Forward forward, MicroBatch& micro_batch) {
  const History history = micro_batch.part.history;
  switch (history) {
    case History::alone:
    case History::backward_by_rows:  // an operator returns its loss
    case History::autocast:          // of functions in Python
      break;
    case History::evaluation:
    case History::two_forwards:
      return with_calls_between(forward, micro_batch, history);
    case History::summed_losses:
      return summed(forward, micro_batch);
    case History::backward_twice:
      return with_backward_twice(forward, micro_batch);
    case History::updated:
      return after_an_update(forward, micro_batch);
  }
  return alone(forward, micro_batch);
}

LossResult run(Forward forward, MicroBatch& micro_batch) {
  const GradMode mode = micro_batch.part.grad_mode;
  const at::AutoGradMode enabled(mode != GradMode::none);
  const auto [out, slopes] = stepped(forward, micro_batch);
  LossResult result;
  result.counts = out.counts;
  std::size_t next = 0;
  for (const OutputInfo& info : outputs_of(micro_batch.signature, micro_batch.part)) {
    const bool gradient = info.kind == OutputKind::gradient;
    if (gradient && !asks_gradient(micro_batch.signature, mode, info.field)) {
      result.outputs.push_back({info.name, Tensor::zeros(info.dtype, info.extents)});
      continue;
    }
    const at::Tensor* tensor = nullptr;
    switch (info.kind) {
      case OutputKind::loss:
        tensor = &out.loss;
        break;
      case OutputKind::value:
        tensor = find(out.values, info.name);
        break;
      case OutputKind::gradient:
        tensor = &slopes.at(next++);
        break;
    }
    if (!tensor) throw std::logic_error("no output '" + info.name + "'");
    // A gradient may be wider than its field: the trainer rounds it once, after accumulation.
    const bool wider = gradient && tensor->scalar_type() == at::kFloat;
    result.outputs.push_back({info.name, from_torch(*tensor, wider ? Dtype::f32 : info.dtype)});
  }
  return result;
}

/// A bias is dense always (rule E12).
Layout layout_of(const Case& part, const Field& field) {
  const Layout layout = layout_of(part, field.name);
  const bool is_bias = field.axes.size() == 1 && !has_rows(field.axes);
  return is_bias && layout == Layout::transposed ? Layout::offset : layout;
}

}  // namespace

StepInputs::StepInputs(MicroBatch& micro_batch) : micro_batch_(micro_batch) {
  for (const Field& field : micro_batch.signature.fields) {
    at::Tensor tensor =
        as_torch(micro_batch.part.batch.at(field.name), layout_of(micro_batch.part, field));
    if (field.role == Role::differentiable) {
      if (!has_rows(field.axes)) tensor = tensor.to(compute_type(tensor.scalar_type()));
      if (asks_gradient(micro_batch.signature, micro_batch.part.grad_mode, field.name)) {
        tensor.requires_grad_();
      }
    }
    fields_.emplace_back(field.name, std::move(tensor));
  }
}

const at::Tensor& StepInputs::operator[](std::string_view field) const {
  if (const at::Tensor* tensor = find(fields_, field)) return *tensor;
  throw std::out_of_range("field '" + std::string(field) + "' is missing");
}

ReductionPlan StepInputs::reduction_plan() const {
  const auto integer = [&](std::string_view option) -> std::int64_t {
    return spec().is_none(option) ? 1 : static_cast<std::int64_t>(spec().number(option));
  };
  return {.reduction = spec().reduction,
          .total_tokens = micro_batch_.totals.tokens,
          .total_sequences = micro_batch_.totals.sequences,
          .max_length = integer("max_length"),
          .num_items = integer("num_items")};
}

Implementation torch_implementation(std::string loss, Source source, Forward forward,
                                    std::string form, const Trainer& trainer) {
  Implementation row;
  row.name = "torch";
  row.loss = std::move(loss);
  row.autograd = true;
  row.source = std::move(source);
  row.unsupported = [](const Case&) { return std::nullopt; };
  row.arithmetic = [form](Dtype stored) { return torch_arithmetic(stored, form); };
  row.evaluate = [forward, trainer](const LossSignature& signature, const Case& c) {
    // OpenMP keeps its number of threads for each of the caller's: what was set in one is not yet
    // set in another, and MKL would spread an exp over all cores.
    at::internal::lazy_init_num_threads();
    return train(
        signature, c, [forward](MicroBatch& micro_batch) { return run(forward, micro_batch); },
        trainer);
  };
  return row;
}

Arithmetic torch_arithmetic(Dtype stored, std::string_view form) {
  return plain_arithmetic(stored == Dtype::f64 ? Dtype::f64 : Dtype::f32, form);
}

std::optional<double> limit_option(const LossSpec& spec, std::string_view option) {
  return spec.is_none(option) ? std::nullopt : std::optional(spec.number(option));
}

KlOptions kl_options(const LossSpec& spec) {
  return {.estimator = parse_kl_estimator(spec.choice("kl_estimator")),
          .input_clamp = limit_option(spec, "kl_input_clamp"),
          .output_clamp = limit_option(spec, "kl_output_clamp"),
          .weighted = spec.number("kl_weighted") != 0.0};
}

PolicyOptions policy_options(const LossSpec& spec) {
  return {.clip_low = spec.number("clip_low"),
          .clip_high = spec.number("clip_high"),
          .dual_clip = limit_option(spec, "dual_clip"),
          .log_ratio_clamp = limit_option(spec, "log_ratio_clamp"),
          .sequence_level = spec.choice("level") == "sequence",
          .kl_penalty = spec.number("kl_penalty"),
          .kl = kl_options(spec)};
}

void expect_positions(const at::Tensor& tensor, const char* argument) {
  TORCH_CHECK(tensor.dim() == 2, argument, " must be [sequences, tokens], got ", tensor.sizes());
}

void expect_like(const at::Tensor& model, const at::Tensor& tensor, const char* argument) {
  TORCH_CHECK(tensor.defined(), argument, " is missing");
  TORCH_CHECK(tensor.sizes() == model.sizes(), argument, " has shape ", tensor.sizes(),
              ", expected ", model.sizes());
}

}  // namespace lossgate::impl
