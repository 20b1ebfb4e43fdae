// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "reference/spec/case.h"

/// GRPO's fields and options, and cases written token by token, for tests of its implementations.
namespace lossgate::impl {

inline LossSignature grpo_signature_for_tests() {
  const auto number = [](std::string name, OptionValue standard) {
    return Option{.name = std::move(name),
                  .standard = std::move(standard),
                  .low = 0.0,
                  .high = 1e6,
                  .nullable = true};
  };
  const auto choice = [](std::string name, std::vector<std::string> choices) {
    Option option{.name = std::move(name), .kind = Option::Kind::choice, .standard = choices[0]};
    option.choices = std::move(choices);
    return option;
  };
  const auto field = [](std::string name, Role role) {
    return Field{.name = std::move(name), .role = role, .axes = {Axis::sequences, Axis::tokens}};
  };
  LossSignature signature{
      .id = "grpo",
      .title = "GRPO",
      .formula = "as in the reference",
      .source = "none",
      .options = {number("clip_low", 0.2), number("clip_high", 0.2), number("dual_clip", None{}),
                  number("log_ratio_clamp", 20.0), choice("level", {"token", "sequence"}),
                  number("kl_penalty", 0.0), choice("kl_estimator", {"k3", "k1", "k2"}),
                  number("kl_input_clamp", 20.0), number("kl_output_clamp", 10.0),
                  number("kl_weighted", 0.0), number("max_length", 16.0)},
      .fields = {field("log_prob", Role::differentiable), field("old_log_prob", Role::constant),
                 field("ref_log_prob", Role::constant), field("advantage", Role::constant),
                 field("mask", Role::mask)},
      .outputs = {{.name = "per_token", .axes = {Axis::sequences, Axis::tokens}}},
      .reductions = {Reduction::token_mean, Reduction::sequence_mean,
                     Reduction::seq_mean_token_sum_norm, Reduction::sum},
      .mask = "mask",
      .advantage = "advantage"};
  signature.fields.back().dtypes = {Dtype::u8};
  return signature;
}

/// log_prob, old_log_prob, ref_log_prob, advantage, mask.
using GrpoEntry = std::array<double, 5>;

inline Case grpo_case(const std::vector<std::vector<GrpoEntry>>& rows, Dtype dtype = Dtype::f32) {
  const LossSignature signature = grpo_signature_for_tests();
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = static_cast<std::int64_t>(rows.size());
  c.shape[Axis::tokens] = static_cast<std::int64_t>(rows.at(0).size());
  for (std::size_t f = 0; f < signature.fields.size(); ++f) {
    const Field& field = signature.fields[f];
    const Dtype own = field.dtypes.empty() ? dtype : field.dtypes[0];
    Tensor tensor = Tensor::zeros(own, c.shape.of(field.axes));
    std::int64_t at = 0;
    for (const auto& row : rows) {
      for (const GrpoEntry& entry : row) tensor.set(at++, entry[f]);
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

}  // namespace lossgate::impl
