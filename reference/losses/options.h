// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reference/spec/case.h"

/// Fields and options that several losses share, word for word.
namespace lossgate::reference {

inline const std::vector<Reduction> kTokenReductions = {
    Reduction::token_mean, Reduction::sequence_mean, Reduction::seq_mean_token_sum_norm,
    Reduction::sum};

inline Field mask_field() {
  return {.name = "mask",
          .role = Role::mask,
          .quantity = Quantity::mask,
          .axes = {Axis::sequences, Axis::tokens},
          .dtypes = {Dtype::u8, Dtype::boolean},
          .doc = "1 = counts in the loss"};
}

inline Field log_prob_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::log_prob,
          .axes = {Axis::sequences, Axis::tokens},
          .infinity = Infinity::legal,
          .doc = std::move(doc)};
}

/// Of the policy that sampled. A trainer that makes one step of each batch has it of the policy
/// itself, detached.
inline Field old_log_prob_field() {
  Field field = log_prob_field("old_log_prob", Role::constant,
                               "behaviour policy; a caller may have none: log_prob, as a constant");
  field.optional = true;
  field.stand_in = "log_prob";
  return field;
}

inline Field advantage_field() {
  return {.name = "advantage",
          .role = Role::constant,
          .quantity = Quantity::advantage,
          .axes = {Axis::sequences, Axis::tokens},
          .infinity = Infinity::surfaces,
          .doc = "of the taken token"};
}

/// Of truncated importance sampling, say, which no gradient flows through.
inline Field importance_weight_field() {
  return {.name = "importance_weight",
          .role = Role::weight,
          .quantity = Quantity::weight,
          .axes = {Axis::sequences, Axis::tokens},
          .infinity = Infinity::surfaces,
          .doc = "of the policy over what sampled; a caller may have none: 1",
          .optional = true,
          .stand_in = "1"};
}

/// Token ids on the vocab axis; kIgnoreLabel masks its position.
inline Field label_field(std::string doc) {
  return {.name = "label",
          .role = Role::label,
          .quantity = Quantity::label,
          .axes = {Axis::sequences, Axis::tokens},
          .dtypes = {Dtype::i64, Dtype::i32},
          .doc = std::move(doc)};
}

inline Field logits_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::logit,
          .axes = {Axis::sequences, Axis::tokens, Axis::vocab},
          .infinity = Infinity::legal,
          .doc = std::move(doc)};
}

inline OutputField per_token_output() {
  return {.name = "per_token",
          .axes = {Axis::sequences, Axis::tokens},
          .doc = "the term of each position before the reduction; 0 where masked"};
}

/// A per-token output that mathematics keeps from being negative.
inline OutputField non_negative_per_token_output() {
  OutputField output = per_token_output();
  output.range = [](const Case&) {
    return std::optional(std::pair(0.0, std::numeric_limits<double>::infinity()));
  };
  return output;
}

inline Option real_option(std::string name, double standard, double low, double high,
                          std::string doc) {
  return {.name = std::move(name),
          .kind = Option::Kind::real,
          .standard = standard,
          .low = low,
          .high = high,
          .doc = std::move(doc)};
}

/// A bound that may be absent.
inline Option limit_option(std::string name, OptionValue standard, double low, double high,
                           std::string doc) {
  return {.name = std::move(name),
          .kind = Option::Kind::real,
          .standard = std::move(standard),
          .low = low,
          .high = high,
          .nullable = true,
          .doc = std::move(doc)};
}

/// With what others have there, the default aside: a search for what is written into a function
/// begins with these.
inline Option usual_option(std::vector<double> usual, Option option) {
  option.usual = std::move(usual);
  return option;
}

inline Option flag_option(std::string name, std::string doc) {
  return {.name = std::move(name),
          .kind = Option::Kind::flag,
          .standard = 0.0,
          .low = 0.0,
          .high = 1.0,
          .doc = std::move(doc)};
}

inline Option choice_option(std::string name, std::vector<std::string> choices, std::string doc) {
  return {.name = std::move(name),
          .kind = Option::Kind::choice,
          .standard = choices.front(),
          .choices = std::move(choices),
          .doc = std::move(doc)};
}

/// The divisor of seq_mean_token_sum_norm.
inline Option max_length_option() {
  return {.name = "max_length",
          .kind = Option::Kind::integer,
          .standard = 16.0,
          .low = 1.0,
          .high = 1048576.0,
          .doc = "divisor of seq_mean_token_sum_norm, tokens"};
}

/// The divisor of sum_over_items.
inline Option num_items_option() {
  return {.name = "num_items",
          .kind = Option::Kind::integer,
          .standard = 8.0,
          .low = 1.0,
          .high = 1048576.0,
          .doc = "divisor of sum_over_items, tokens of the whole step"};
}

inline Option temperature_option() {
  return real_option("temperature", 1.0, 0.05, 10.0, "logits are divided by it");
}

inline Option log_ratio_clamp_option() {
  return usual_option({10.0, 5.0}, limit_option("log_ratio_clamp", 20.0, 1.0, 80.0,
                                                "bound of |log-ratio| before exp"));
}

inline std::vector<Option> kl_options() {
  return {choice_option("kl_estimator", {"k3", "k1", "k2"},
                        "estimator of the KL divergence, x = ref_log_prob - log_prob; "
                        "k3: exp(x) - x - 1, k1: -x, k2: x^2 / 2"),
          limit_option("kl_input_clamp", 20.0, 1.0, 80.0, "bound of |ref_log_prob - log_prob|"),
          limit_option("kl_output_clamp", 10.0, 1.0, 1000.0, "bound of |KL|, once it is weighted"),
          flag_option("kl_weighted", "multiply the estimate by the importance weight")};
}

inline std::vector<Option> policy_options() {
  std::vector<Option> options = {
      // 3e-4 and 4e-4 are those of sequences (GSPO), 0.28 is that of DAPO.
      usual_option({0.1, 0.3, 0.4, 3e-4},
                   real_option("clip_low", 0.2, 0.0, 0.9, "clip distance below 1")),
      usual_option({0.28, 0.1, 0.3, 0.4, 4e-4},
                   real_option("clip_high", 0.2, 0.0, 4.0, "clip distance above 1")),
      usual_option({3.0, 10.0, 5.0},
                   limit_option("dual_clip", None{}, 1.5, 20.0, "bound of the weight where A < 0")),
      log_ratio_clamp_option(),
      choice_option("level", {"token", "sequence"},
                    "level of the importance weight; token: each its own, "
                    "sequence: exp of the mean log-ratio of the sequence"),
      usual_option({0.001, 0.01, 0.05, 0.1},
                   real_option("kl_penalty", 0.04, 0.0, 1.0, "coefficient of the KL term"))};
  for (Option& option : kl_options()) options.push_back(std::move(option));
  options.push_back(max_length_option());
  return options;
}

}  // namespace lossgate::reference
