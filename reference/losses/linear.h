// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reference/losses/options.h"
#include "reference/rows.h"

namespace lossgate::reference {

inline Field hidden_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::hidden_state,
          .axes = {Axis::sequences, Axis::tokens, Axis::hidden},
          .infinity = Infinity::surfaces,
          .doc = std::move(doc)};
}

inline Field weight_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::weight,
          .axes = {Axis::vocab, Axis::hidden},
          .infinity = Infinity::surfaces,
          .doc = std::move(doc)};
}

/// A sum that the arithmetic forms as it multiplies matrices.
template <class S>
Sum<S> matmul_sum(std::int64_t extent) {
  return Sum<S>(extent);
}

template <>
inline Sum<Tracked> matmul_sum<Tracked>(std::int64_t extent) {
  return Sum<Tracked>(extent, &tracking::current->matmul);
}

/// start + sum of left(i) right(i), charged as the arithmetic multiplies matrices. All of it is
/// going to be divided.
template <class S, class Left, class Right>
S dot(std::int64_t n, const S& start, const S& divisor, Left&& left, Right&& right) {
  Sum<S> sum = matmul_sum<S>(n + 1);
  sum.add(start);
  for (std::int64_t i = 0; i < n; ++i) sum.add(multiplied(left(i), right(i), divisor));
  return sum.value();
}

/// The output layer: logits[v] = (sum_h hidden[h] weight[v, h] + bias[v]) / temperature, whichever
/// of these is divided, and the gradients that flow back through it. Weight and bias gradients are
/// summed over all positions.
template <class S>
class OutputLayer {
 public:
  OutputLayer(const Inputs<S>& in, std::string_view hidden, std::string_view weight,
              std::string_view bias)
      : in_(in),
        vocab_(in.extent(Axis::vocab)),
        width_(in.extent(Axis::hidden)),
        temperature_(in.option("temperature")),
        hidden_(in.field(hidden)),
        weight_(in.field(weight)),
        bias_(bias.empty() ? weight_ : in.field(bias)),
        has_bias_(!bias.empty()) {}

  Row<S> logits(std::int64_t s, std::int64_t t) const {
    Row<S> row(vocab_);
    const bool plain = value_of(temperature_) == 1;
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const S start = has_bias_ ? bias_(v) : S(0);
      const S x = dot<S>(
          width_, start, temperature_, [&](std::int64_t h) { return hidden_(s, t, h); },
          [&](std::int64_t h) { return weight_(v, h); });
      row[v] = store(Stage::logits, plain ? x : x / temperature_);
    }
    return row;
  }

  /// Makes room for weight and bias gradients.
  void start_gradients() {
    weight_sums_.assign(static_cast<std::size_t>(vocab_ * width_),
                        matmul_sum<S>(in_.sequences() * in_.tokens()));
    bias_sums_.assign(static_cast<std::size_t>(vocab_), in_.batch_sum());
  }

  /// Takes in the gradient by logit of one position; writes the one by hidden state.
  void back(const Row<S>& by_logit, std::int64_t s, std::int64_t t,
            const typename Outputs<S>::Writer& write_hidden) {
    Row<S> g(vocab_);
    const S upstream = in_.upstream();
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const S x = through_temperature(by_logit[v], temperature_, upstream);
      g[v] = store(Stage::logits, made_for_one(x, upstream));
      bias_sums_[static_cast<std::size_t>(v)].add(g[v]);
    }
    for (std::int64_t h = 0; h < width_; ++h) {
      const S x = hidden_(s, t, h);
      Sum<S> sum = matmul_sum<S>(vocab_);
      for (std::int64_t v = 0; v < vocab_; ++v) {
        sum.add(multiplied(g[v], weight_(v, h), temperature_));
        weight_sums_[static_cast<std::size_t>(v * width_ + h)].add(
            multiplied(g[v], x, temperature_));
      }
      write_hidden(in_.gradient(sum.scaled(upstream)), s, t, h);
    }
  }

  void write_weight_gradient(const typename Outputs<S>::Writer& write) const {
    for (std::int64_t v = 0; v < vocab_; ++v) {
      for (std::int64_t h = 0; h < width_; ++h) {
        const auto& sum = weight_sums_[static_cast<std::size_t>(v * width_ + h)];
        write.accumulated([&](std::int64_t parts) { return gradient_of(sum, parts); }, v, h);
      }
    }
  }

  void write_bias_gradient(const typename Outputs<S>::Writer& write) const {
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const auto& sum = bias_sums_[static_cast<std::size_t>(v)];
      write.accumulated([&](std::int64_t parts) { return gradient_of(sum, parts); }, v);
    }
  }

 private:
  S gradient_of(const Sum<S>& sum, std::int64_t parts) const {
    return in_.gradient(sum.accumulated(parts, in_.upstream()));
  }

  const Inputs<S>& in_;
  std::int64_t vocab_, width_;
  S temperature_;
  FieldReader<S> hidden_, weight_, bias_;
  bool has_bias_;
  std::vector<Sum<S>> weight_sums_, bias_sums_;
};

}  // namespace lossgate::reference
