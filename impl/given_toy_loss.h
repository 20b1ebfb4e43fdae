// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "reference/spec/case.h"

/// A signature with every kind of field, for tests of what all losses share.
namespace lossgate::impl {

inline LossSignature toy_signature() {
  return {
      .id = "toy",
      .title = "A loss for tests",
      .formula = "sum of x",
      .source = "none",
      .options =
          {{.name = "scale", .standard = 1.0, .low = 0.0, .high = 4.0},
           {.name = "limit", .standard = None{}, .low = 1.0, .high = 8.0, .nullable = true},
           {.name = "length",
            .kind = Option::Kind::integer,
            .standard = 4.0,
            .low = 1.0,
            .high = 9.0},
           {.name = "kind", .kind = Option::Kind::choice, .standard = "a", .choices = {"a", "b"}}},
      .fields = {{.name = "x",
                  .role = Role::differentiable,
                  .axes = {Axis::sequences, Axis::tokens},
                  .infinity = Infinity::refused},
                 {.name = "weight",
                  .role = Role::differentiable,
                  .quantity = Quantity::weight,
                  .axes = {Axis::hidden}},
                 {.name = "label",
                  .role = Role::label,
                  .quantity = Quantity::label,
                  .axes = {Axis::sequences, Axis::tokens},
                  .dtypes = {Dtype::i64}},
                 {.name = "mask",
                  .role = Role::mask,
                  .quantity = Quantity::mask,
                  .axes = {Axis::sequences, Axis::tokens},
                  .dtypes = {Dtype::u8, Dtype::boolean}}},
      .outputs = {{.name = "per_token", .axes = {Axis::sequences, Axis::tokens}}},
      .reductions = {Reduction::sum, Reduction::token_mean},
      .mask = "mask",
      .ignore_label = "label"};
}

/// x counts up from 1, all labels are 0, everything is valid.
inline Case toy_case(const LossSignature& signature, std::int64_t sequences, std::int64_t tokens,
                     Dtype dtype = Dtype::f32) {
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  c.shape[Axis::hidden] = 1;
  c.shape[Axis::vocab] = 5;
  for (const Field& field : signature.fields) {
    const Dtype own = field.dtypes.empty() ? dtype : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(own, c.shape.of(field.axes)));
  }
  for (std::int64_t i = 0; i < sequences * tokens; ++i) {
    c.batch.at("x").set(i, static_cast<double>(i + 1));
    c.batch.at("mask").set(i, 1.0);
  }
  return c;
}

}  // namespace lossgate::impl
