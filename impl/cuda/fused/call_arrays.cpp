// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/fused/call_arrays.h"

#include <cmath>

#include "impl/cuda/weighing.h"

namespace lossgate::impl {
namespace {

Reduction reduction_of(const lossgate_fused_call& call) {
  if (call.reduction) {
    const auto reduction = parse_reduction(call.reduction);
    if (reduction && *reduction != Reduction::none) return *reduction;
  }
  throw Refusal{.argument = "reduction", .message = "is not the name of one"};
}

LossSpec spec_of(const lossgate_fused_call& call) {
  LossSpec spec;
  spec.loss = call.loss;
  spec.reduction = reduction_of(call);
  for (const lossgate_fused_option& option : std::span(call.options, call.option_count)) {
    const OptionValue number = std::isnan(option.number) ? OptionValue(None{}) : option.number;
    spec.set(option.name, option.choice ? OptionValue(option.choice) : number);
  }
  return spec;
}

}  // namespace

bool is_masked(const LossSpec& spec) { return spec.loss == "grpo" || spec.loss == "value_clip"; }

CallArrays::CallArrays(const lossgate_fused_call& call)
    : call_(call), arrays_(call.arrays, call.array_count), spec_(spec_of(call)) {
  require_defined(call, spec_);
}

std::int64_t CallArrays::extent(Axis axis) const {
  switch (axis) {
    case Axis::sequences:
      return call_.sequences;
    case Axis::tokens:
      return call_.tokens;
    case Axis::vocab:
      return call_.vocab;
    case Axis::support:
      return call_.support;
    default:
      return -1;
  }
}

const lossgate_fused_array* CallArrays::find(std::string_view name) const {
  for (const lossgate_fused_array& array : arrays_) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

const lossgate_fused_array& CallArrays::required(std::string_view name) const {
  const lossgate_fused_array* const array = find(name);
  if (!array) throw Refusal{.argument = std::string(name), .message = "is missing"};
  const bool empty = call_.sequences == 0 || call_.tokens == 0;
  if (!array->data && !empty) {
    throw Refusal{.argument = std::string(name), .message = "has no memory"};
  }
  return *array;
}

const lossgate_fused_array& CallArrays::required(std::string_view name, Dtype dtype) const {
  const lossgate_fused_array& array = required(name);
  require_dtype(array, dtype);
  return array;
}

void CallArrays::require_dtype(const lossgate_fused_array& array, Dtype dtype) {
  if (array.dtype == static_cast<std::int32_t>(dtype)) return;
  throw Refusal{.argument = array.name,
                .message = "is not stored in " + std::string(lossgate::name(dtype))};
}

float* CallArrays::loss() const {
  float* const loss = output<float>("loss", {}).data;
  if (!loss) throw Refusal{.argument = "loss", .message = "has no memory"};
  return loss;
}

Dtype CallArrays::dtype_of(std::string_view field) const {
  const lossgate_fused_array& array = required(field);
  for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    if (array.dtype == static_cast<std::int32_t>(dtype)) return dtype;
  }
  throw Refusal{.argument = array.name, .message = "is stored neither in f32, bf16 nor f16"};
}

Validity CallArrays::validity() const {
  if (const lossgate_fused_array* const mask = is_masked(spec_) ? find("mask") : nullptr) {
    if (mask->dtype != static_cast<std::int32_t>(Dtype::boolean)) {
      require_dtype(*mask, Dtype::u8);
    }
    return {.mask = strided<const std::uint8_t>(required("mask")), .labels = {}};
  }
  const lossgate_fused_array& label = required("label");
  if (label.dtype == static_cast<std::int32_t>(Dtype::i32)) {
    return {.mask = {}, .labels = {.narrow = strided<const std::int32_t>(label), .wide = {}}};
  }
  return {.mask = {}, .labels = {.narrow = {}, .wide = field<std::int64_t>("label")}};
}

TokenArrays CallArrays::tokens() const {
  TokenArrays tokens;
  tokens.sequences = call_.sequences;
  tokens.tokens = call_.tokens;
  tokens.validity = validity();
  tokens.weighing = weighing_of(
      spec_, {.tokens = call_.total_tokens, .sequences = call_.total_sequences, .rows = 0});
  tokens.row_tokens = output<std::int64_t>("row_tokens", {}).data;
  tokens.weighted = output<float>("weighted", {});
  if (find("upstream")) tokens.upstream_at = field<float>("upstream").data;
  return tokens;
}

}  // namespace lossgate::impl
