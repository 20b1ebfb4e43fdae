// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "reference/spec/signature.h"

/// Signatures of no real loss, for the tests of this folder.
namespace lossgate::fuzz {

inline Field fake_field(std::string name, Role role, Quantity quantity, std::vector<Axis> axes,
                        std::vector<Dtype> dtypes = {}, Infinity infinity = Infinity::surfaces) {
  return {.name = std::move(name),
          .role = role,
          .quantity = quantity,
          .axes = std::move(axes),
          .infinity = infinity,
          .dtypes = std::move(dtypes)};
}

inline const std::vector<Axis> kPerToken = {Axis::sequences, Axis::tokens};

inline LossSignature fake_policy_loss() {
  LossSignature signature;
  signature.id = "fake_policy";
  signature.options = {
      {.name = "clip", .kind = Option::Kind::real, .standard = 0.2, .low = 0.0, .high = 0.9},
      {.name = "bound",
       .kind = Option::Kind::real,
       .standard = None{},
       .low = 1.5,
       .high = 20.0,
       .nullable = true},
      {.name = "weighted", .kind = Option::Kind::flag, .standard = 0.0, .low = 0.0, .high = 1.0},
      {.name = "level",
       .kind = Option::Kind::choice,
       .standard = std::string("token"),
       .choices = {"token", "sequence"}},
      {.name = "length",
       .kind = Option::Kind::integer,
       .standard = 16.0,
       .low = 1.0,
       .high = 1048576.0}};
  signature.fields = {
      fake_field("log_prob", Role::differentiable, Quantity::log_prob, kPerToken, {},
                 Infinity::legal),
      fake_field("old_log_prob", Role::constant, Quantity::log_prob, kPerToken),
      fake_field("ref_log_prob", Role::constant, Quantity::log_prob, kPerToken),
      fake_field("advantage", Role::constant, Quantity::advantage, kPerToken),
      fake_field("mask", Role::mask, Quantity::mask, kPerToken, {Dtype::u8, Dtype::boolean})};
  signature.reductions = {Reduction::token_mean, Reduction::sequence_mean, Reduction::sum};
  signature.mask = "mask";
  signature.on_policy = {{"old_log_prob", "log_prob"}, {"ref_log_prob", "log_prob"}};
  return signature;
}

/// A policy loss whose clip is as far above as below.
inline LossSignature fake_symmetric_loss() {
  LossSignature signature = fake_policy_loss();
  signature.id = "fake_symmetric";
  Option above = signature.options.front();
  above.name = "clip_above";
  above.follows = "clip";
  signature.options.insert(signature.options.begin(), above);
  return signature;
}

inline LossSignature fake_vocabulary_loss() {
  const std::vector<Axis> rows = {Axis::sequences, Axis::tokens, Axis::vocab};
  LossSignature signature;
  signature.id = "fake_vocabulary";
  signature.fields = {
      fake_field("labels", Role::label, Quantity::label, kPerToken, {Dtype::i64, Dtype::i32}),
      fake_field("student", Role::differentiable, Quantity::logit, rows, {}, Infinity::legal),
      fake_field("teacher", Role::constant, Quantity::logit, rows)};
  signature.reductions = {Reduction::token_mean};
  signature.ignore_label = "labels";
  return signature;
}

/// Everything else: values, a support, hidden states, weights, groups, upstream gradients, both
/// ways to mask.
inline LossSignature fake_mixed_loss() {
  const std::vector<Axis> support = {Axis::sequences, Axis::tokens, Axis::support};
  LossSignature signature;
  signature.id = "fake_mixed";
  signature.fields = {
      fake_field("value", Role::differentiable, Quantity::value, kPerToken),
      fake_field("old_value", Role::constant, Quantity::value, kPerToken),
      fake_field("target", Role::constant, Quantity::value, kPerToken),
      fake_field("student", Role::differentiable, Quantity::log_prob, support),
      fake_field("teacher", Role::constant, Quantity::log_prob, support, {}, Infinity::legal),
      fake_field("certain", Role::differentiable, Quantity::log_prob, support, {Dtype::f32},
                 Infinity::legal),
      fake_field("support_mask", Role::mask, Quantity::mask, support, {Dtype::u8}),
      fake_field("support_ids", Role::label, Quantity::label, support, {Dtype::i32}),
      fake_field("hidden", Role::differentiable, Quantity::hidden_state,
                 {Axis::sequences, Axis::tokens, Axis::hidden}),
      fake_field("matrix", Role::differentiable, Quantity::weight, {Axis::vocab, Axis::hidden}),
      fake_field("weight", Role::weight, Quantity::weight, kPerToken),
      fake_field("upstream", Role::constant, Quantity::upstream, kPerToken),
      fake_field("group", Role::group, Quantity::group, {Axis::sequences}, {Dtype::i64}),
      fake_field("reward", Role::constant, Quantity::advantage, {Axis::sequences}),
      fake_field("labels", Role::label, Quantity::label, kPerToken, {Dtype::i32, Dtype::i64}),
      fake_field("mask", Role::mask, Quantity::mask, kPerToken, {Dtype::boolean})};
  signature.reductions = {Reduction::sum};
  signature.mask = "mask";
  signature.ignore_label = "labels";
  signature.on_policy = {{"value", "old_value"}};
  return signature;
}

/// The loss, of callers who keep these fields in f32.
inline LossSignature fake_wide(LossSignature signature, std::vector<std::string> wide) {
  signature.id += "_wide";
  for (Field& field : signature.fields) field.wide = std::ranges::count(wide, field.name) > 0;
  return signature;
}

/// Tensors in, tensors out: no positions, no loss.
inline LossSignature fake_payload_operation() {
  LossSignature signature;
  signature.id = "fake_payload";
  signature.fields = {fake_field("message", Role::constant, Quantity::payload,
                                 {Axis::responses, Axis::bytes}, {Dtype::u8})};
  signature.reductions = {Reduction::none};
  signature.splittable = false;
  return signature;
}

inline std::vector<LossSignature> all_signatures() {
  return {fake_policy_loss(),
          fake_symmetric_loss(),
          fake_vocabulary_loss(),
          fake_mixed_loss(),
          fake_payload_operation(),
          fake_wide(fake_policy_loss(), {"old_log_prob", "advantage"}),
          fake_wide(fake_policy_loss(), {"log_prob"}),
          fake_wide(fake_vocabulary_loss(), {"teacher"}),
          fake_wide(fake_vocabulary_loss(), {"student"}),
          fake_wide(fake_mixed_loss(), {"old_value", "teacher", "matrix"}),
          fake_wide(fake_mixed_loss(), {"value", "student", "reward"})};
}

}  // namespace lossgate::fuzz
