// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/token_terms.h"
#include "reference/problem.h"
#include "reference/products.h"
#include "reference/squares.h"
#include "reference/sums.h"

namespace lossgate::reference {

/// The clipped value loss of a critic.
///
/// Formula: 1/2 max((V - R)^2, (V' - R)^2), reduced over valid positions, with
///   V' = old + clamp(V - old, +-value_clip)        (clip_form "around_old"), or
///   V' = clamp(V, old - value_clip, old + value_clip)   (clip_form "interval");
///   without value_clip, 1/2 (V - R)^2.
/// Shapes: all fields [sequences, tokens]. Units: those of the reward.
/// Gradient: for value: V - R inside the clip range, where both arguments of max are the same
///   function; outside, V - R where its square is the larger, half of it on a tie, else 0.
/// Error: the factor 1/2 goes inside the square: (d / 2) d overflows only where the result does.
///   Squares that overflow or underflow are equal to whoever compares them.
/// Source: Schulman et al. 2016-17, OpenAI baselines ppo2; verl `compute_value_loss`;
///   NovaSky-AI/SkyRL `ppo_critic_loss` and #925.
struct ValueClip {
  static constexpr bool kByPosition = true;  ///< its positions are alike: the filter pays

  static LossSignature signature() {
    const auto field = [](std::string name, Role role, std::string doc) {
      return Field{.name = std::move(name),
                   .role = role,
                   .quantity = Quantity::value,
                   .axes = {Axis::sequences, Axis::tokens},
                   .infinity = Infinity::surfaces,
                   .doc = std::move(doc)};
    };
    Field old_value = field("old_value", Role::constant,
                            "the prediction when the batch was made; a caller may have none, and "
                            "clips nothing: value, as a constant");
    old_value.optional = true;
    old_value.stand_in = "value";
    return {
        .id = "value_clip",
        .title = "clipped value loss of a critic",
        .formula = "max((d / 2) d, (e / 2) e), d = V - R, e = clip(V) - R",
        .source = "OpenAI baselines ppo2; verl compute_value_loss; NovaSky-AI/SkyRL#925",
        .options = {limit_option("value_clip", 0.2, 0.01, 10.0, "clip distance from old_value"),
                    choice_option("clip_form", {"around_old", "interval"},
                                  "how V is clipped, c being value_clip; "
                                  "around_old: old + clamp(V - old, -c, c), "
                                  "interval: clamp(V, old - c, old + c)"),
                    max_length_option()},
        .fields = {field("value", Role::differentiable, "the critic's prediction V"),
                   std::move(old_value), field("return", Role::constant, "the target R"),
                   mask_field()},
        .outputs = {non_negative_per_token_output()},
        .reductions = kTokenReductions,
        .reach = {{"|V - R|", "return", "value"}, {"|V - old|", "old_value", "value"}},
        .mask = "mask",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto value = in.field("value"), old = in.field("old_value"), target = in.field("return");
    evaluate_by_token(in, out, "value", [&](const S& weight, std::int64_t s, std::int64_t t) {
      const Token<S> token = at(in, value(s, t), old(s, t), target(s, t));
      return TokenTerm<S>{token.value, weight * token.value, in.upstream() * weight * token.slope};
    });
  }

 private:
  template <class S>
  struct Token {
    S value, slope;
  };

  template <class S>
  static S half_square(const S& d) {
    return constant<S>(0.5L) * d * d;
  }

  template <class S>
  static Token<S> at(const Inputs<S>& in, const S& v, const S& old, const S& target) {
    const S d = v - target;
    if (in.spec().is_none("value_clip")) return {half_square(d), slope_of_half_square(d)};
    const S limit = in.option("value_clip");
    const bool around_old = in.spec().choice("clip_form") == "around_old";
    const S e = around_old
                    ? sum_in_any_order(std::array{old, clamp(v - old, -limit, limit), S(-target)})
                    : S(clamp(v, old - limit, old + limit) - target);
    const S plain = half_square(d), other = half_square(e);
    // As the implementation compares: where old is large, old - limit is rounded far more than
    // v - old is.
    const auto low = around_old ? compare(v - old, -limit) : compare(v, old - limit),
               high = around_old ? compare(v - old, limit) : compare(v, old + limit);
    const auto undecided = (low == Order::undecided) | (high == Order::undecided);
    const auto outside = (low == Order::below) | (high == Order::above);
    // Inside the range both squares are one function, and max may hand the gradient to either; at
    // the range's undecided edge the clipped one may pass it on or not.
    const S slope = choose(
        undecided, [&] { return S(either(d, e) * anything_between<S>(0.0, 1.0)); },
        [&] {
          return choose(
              outside, [&] { return S(d * share_of_larger_square(d, e)); },
              [&] { return S(either(d, e)); });
        });
    return {maximum(plain, other), slope_of_half_square(slope)};
  }
};

}  // namespace lossgate::reference
