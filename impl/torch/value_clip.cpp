// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include "impl/torch/catalog.h"
#include "impl/torch/position_loss.h"
#include "impl/torch/step.h"

namespace lossgate::impl {
namespace {

enum class ClipForm { around_old, interval };

ClipForm parse_clip_form(std::string_view text) {
  if (text == "interval") return ClipForm::interval;
  TORCH_CHECK(text == "around_old", "clip_form must be around_old or interval, got '",
              std::string(text), "'");
  return ClipForm::around_old;
}

/// The factor goes inside: (d / 2) d overflows only where the result does.
at::Tensor half_square(const at::Tensor& d) { return (d * 0.5).mul_(d); }

struct Clipped {
  at::Tensor value, outside;
};

/// Each form is asked whether it clips by its own comparison: old_value +- clip and value -
/// old_value are rounded differently.
Clipped clipped_value(const at::Tensor& value, const at::Tensor& old_value, double clip,
                      ClipForm form) {
  if (form == ClipForm::around_old) {
    const at::Tensor moved = value - old_value;
    return {old_value + moved.clamp(-clip, clip), moved.abs() > clip};
  }
  const at::Tensor low = old_value - clip, high = old_value + clip;
  return {value.clamp(low, high), (value < low).logical_or_(value > high)};
}

/// Which square is the larger is told from the distances: squares overflow and underflow where
/// these do not.
TermsAndSlope value_terms(const at::Tensor& value, const at::Tensor& old_value,
                          const at::Tensor& returns, std::optional<double> clip, ClipForm form) {
  const at::Tensor d = value - returns;
  if (!clip) return {half_square(d), d};
  const auto [clipped, outside] = clipped_value(value, old_value, *clip, form);
  const at::Tensor e = clipped - returns;
  const at::Tensor far = d.abs(), near = e.abs();
  const at::Tensor tie = outside.logical_and(far == near);
  const at::Tensor slope = at::where(tie, d * 0.5, d);
  return {at::maximum(half_square(d), half_square(e)),
          slope.masked_fill(outside.logical_and(far < near), 0)};
}

std::tuple<at::Tensor, at::Tensor> value_clip(const at::Tensor& value, const at::Tensor& old_value,
                                              const at::Tensor& returns, const at::Tensor& mask,
                                              std::optional<double> clip, ClipForm form,
                                              const ReductionPlan& plan) {
  TORCH_CHECK(!clip || *clip >= 0.0, "value_clip must not be negative, got ", *clip);
  return position_loss({{"value", value}, {"old_value", old_value}, {"returns", returns}}, mask,
                       plan,
                       [&](const Tensors& f) { return value_terms(f[0], f[1], f[2], clip, form); });
}

std::tuple<at::Tensor, at::Tensor> value_clip_operator(
    const at::Tensor& value, const at::Tensor& old_value, const at::Tensor& returns,
    const at::Tensor& mask, std::int64_t total_tokens, std::int64_t total_sequences,
    c10::string_view reduction, std::optional<double> clip, c10::string_view clip_form,
    std::int64_t max_length) {
  return value_clip(value, old_value, returns, mask, clip, parse_clip_form(clip_form),
                    reduction_plan(reduction, {total_tokens, total_sequences, max_length}));
}

StepOutputs value_clip_step(const StepInputs& in) {
  auto [loss, per_token] = value_clip(
      in["value"], in["old_value"], in["return"], in["mask"], limit_option(in.spec(), "value_clip"),
      parse_clip_form(in.spec().choice("clip_form")), in.reduction_plan());
  return {.loss = loss, .values = {{"per_token", per_token}}};
}

constexpr int kLine = __LINE__;

}  // namespace

Implementation value_clip_implementation() {
  return torch_implementation("value_clip", {"impl/torch/value_clip.cpp", kLine}, value_clip_step,
                              "");
}

}  // namespace lossgate::impl

TORCH_LIBRARY_FRAGMENT(lossgate, library) {
  library.def(
      "value_clip(Tensor value, Tensor old_value, Tensor returns, Tensor mask, *, "
      "int total_tokens, int total_sequences, str reduction='token_mean', "
      "float? value_clip=0.2, str clip_form='around_old', int max_length=16) "
      "-> (Tensor loss, Tensor per_token)");
  library.impl("value_clip", c10::DispatchKey::CompositeImplicitAutograd,
               TORCH_FN(lossgate::impl::value_clip_operator));
}
