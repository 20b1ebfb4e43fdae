// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/matrix_products.h"

namespace lossgate::reference {

inline Field hidden_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::hidden_state,
          .axes = {Axis::sequences, Axis::tokens, Axis::hidden},
          .infinity = Infinity::surfaces,
          .doc = std::move(doc)};
}

inline Field bias_field() {
  return {.name = "bias",
          .role = Role::differentiable,
          .quantity = Quantity::weight,
          .axes = {Axis::vocab},
          .infinity = Infinity::surfaces,
          .doc = "of the output layer; a layer may have none",
          .optional = true};
}

inline Field weight_field(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .quantity = Quantity::weight,
          .axes = {Axis::vocab, Axis::hidden},
          .infinity = Infinity::surfaces,
          .doc = std::move(doc)};
}

/// The fields of an output layer; one may have no bias.
struct LayerNames {
  std::string_view hidden, weight, bias = {};
};

/// The output layer: logits[v] = (sum_h hidden[h] weight[v, h] + bias[v]) / temperature, whichever
/// of these is divided.
template <class S>
class OutputLayer {
 public:
  OutputLayer(const Inputs<S>& in, const LayerNames& names, const S& temperature)
      : names_(names),
        vocab_(in.extent(Axis::vocab)),
        width_(in.extent(Axis::hidden)),
        temperature_(temperature),
        inverse_temperature_(selected<S>(1.0) / temperature),
        hidden_(in.field(names.hidden)),
        weight_(in.field(names.weight)),
        bias_(in.field(names.bias.empty() ? names.weight : names.bias)) {}

  Row<S> logits(std::int64_t s, std::int64_t t) const {
    Row<S> row(vocab_);
    const bool biased = !names_.bias.empty();
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const S start = biased ? bias_(v) : S(0);
      const S x = dot<S>(
          width_, start, temperature_, [&](std::int64_t h) { return hidden(s, t, h); },
          [&](std::int64_t h) { return weight(v, h); });
      row[v] = over_temperature(x, temperature_);
    }
    return row;
  }

  const LayerNames& names() const { return names_; }
  std::int64_t vocab() const { return vocab_; }
  std::int64_t width() const { return width_; }
  const S& temperature() const { return temperature_; }
  /// What comes last to a gradient where hidden states or weights were divided.
  const S& inverse_temperature() const { return inverse_temperature_; }
  S hidden(std::int64_t s, std::int64_t t, std::int64_t h) const { return hidden_(s, t, h); }
  S weight(std::int64_t v, std::int64_t h) const { return weight_(v, h); }

 private:
  LayerNames names_;
  std::int64_t vocab_, width_;
  S temperature_, inverse_temperature_;
  FieldReader<S> hidden_, weight_, bias_;
};

/// The gradients that flow back through an output layer. Those of weight and bias are summed over
/// all positions.
template <class S>
class LayerGradients {
 public:
  LayerGradients(const Inputs<S>& in, const Outputs<S>& out, const OutputLayer<S>& layer)
      : in_(in),
        layer_(layer),
        write_hidden_(out.gradient(layer.names().hidden)),
        write_weight_(out.gradient(layer.names().weight)),
        write_bias_(out.gradient(layer.names().bias)) {
    if (!wanted()) return;
    weight_sums_.assign(static_cast<std::size_t>(layer.vocab() * layer.width()),
                        matmul_sum<S>(in.sequences() * in.tokens()));
    bias_sums_.assign(static_cast<std::size_t>(layer.vocab()), in.batch_sum());
  }

  /// Whether anyone asks for one of them.
  bool wanted() const {
    return write_hidden_.wanted() || write_weight_.wanted() || write_bias_.wanted();
  }

  /// Hidden states that are masked have a gradient of 0.
  void masked(std::int64_t s, std::int64_t t) const {
    for (std::int64_t h = 0; h < layer_.width(); ++h) write_hidden_(S(0), s, t, h);
  }

  /// Takes in the gradient by logit of one position; writes the one by hidden state.
  void back(const Row<S>& by_logit, std::int64_t s, std::int64_t t) {
    const S upstream = in_.upstream(), temperature = layer_.temperature();
    Row<S> g(by_logit.size());
    for (std::int64_t v = 0; v < g.size(); ++v) {
      const S x = through_temperature(by_logit[v], temperature, upstream);
      g[v] = store(Stage::logits, made_for_one(x, upstream));
      if (write_bias_.wanted()) bias_sums_[static_cast<std::size_t>(v)].add(g[v]);
    }
    for (std::int64_t h = 0; h < layer_.width(); ++h) {
      const S x = layer_.hidden(s, t, h);
      Sum<S> sum = matmul_sum<S>(g.size());
      for (std::int64_t v = 0; v < g.size(); ++v) {
        sum.add(matrix_term(g[v], layer_.weight(v, h), temperature));
        weight_sums_[static_cast<std::size_t>(v * layer_.width() + h)].add(
            matrix_term(g[v], x, temperature));
      }
      write_hidden_(in_.gradient(sum.scaled(upstream, layer_.inverse_temperature())), s, t, h);
    }
  }

  /// After the last position: those by weight and bias.
  void write() const {
    if (!wanted()) return;
    for (std::int64_t v = 0; v < layer_.vocab(); ++v) {
      write_sum(write_bias_, bias_sums_[static_cast<std::size_t>(v)], v);
      for (std::int64_t h = 0; h < layer_.width(); ++h) {
        write_sum(write_weight_, weight_sums_[static_cast<std::size_t>(v * layer_.width() + h)], v,
                  h);
      }
    }
  }

 private:
  using Writer = typename Outputs<S>::Writer;

  template <class... Index>
  void write_sum(const Writer& write, const Sum<S>& sum, Index... index) const {
    write.accumulated(
        [&](std::int64_t parts) {
          const S whole = sum.accumulated(parts, in_.upstream(), layer_.inverse_temperature());
          return in_.gradient(sum.in_stored_parts(whole, Stage::gradient, in_.sequences()));
        },
        index...);
  }

  const Inputs<S>& in_;
  const OutputLayer<S>& layer_;
  Writer write_hidden_, write_weight_, write_bias_;
  std::vector<Sum<S>> weight_sums_, bias_sums_;
};

/// The terms of the rows of logits that the layer makes of hidden states:
/// `term_at(logits, weight, s, t, wanted)`.
template <class S, class TermAt>
void evaluate_by_hidden(const Inputs<S>& in, const Outputs<S>& out, const OutputLayer<S>& layer,
                        TermAt&& term_at) {
  LayerGradients<S> gradients(in, out, layer);
  evaluate_terms(in, out, gradients,
                 [&](const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
                   return weighted_by(weight, term_at(layer.logits(s, t), weight, s, t, wanted));
                 });
  gradients.write();
}

}  // namespace lossgate::reference
