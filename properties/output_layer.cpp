// SPDX-License-Identifier: Apache-2.0
#include "properties/output_layer.h"

namespace lossgate::properties {

std::vector<OutputLayer> output_layers(const LossSignature& signature) {
  std::vector<OutputLayer> layers;
  for (const Role role : {Role::differentiable, Role::constant}) {
    OutputLayer layer{.leaf = role == Role::differentiable, .state = "", .weight = "", .bias = ""};
    for (const Field& field : signature.fields) {
      if (field.role != role) continue;
      if (field.quantity == Quantity::hidden_state) layer.state = field.name;
      if (field.axes == std::vector{Axis::vocab, Axis::hidden}) layer.weight = field.name;
      if (field.axes == std::vector{Axis::vocab} && !field.absent) layer.bias = field.name;
    }
    if (!layer.state.empty() && !layer.weight.empty()) layers.push_back(layer);
  }
  return layers;
}

double logit_of(const Case& c, const OutputLayer& layer, std::int64_t label) {
  const Tensor &state = c.batch.at(layer.state), &weight = c.batch.at(layer.weight);
  double logit = layer.bias.empty() ? 0.0 : c.batch.at(layer.bias).at(label);
  for (std::int64_t i = 0; i < state.size(); ++i) {
    logit += state.at(i) * weight.at(label * state.size() + i);
  }
  return logit;
}

void set_logit(Case& c, const OutputLayer& layer, std::int64_t label, double logit) {
  const Tensor& state = c.batch.at(layer.state);
  Tensor& weight = c.batch.at(layer.weight);
  const std::int64_t first = label * state.size();
  const double by = (logit - logit_of(c, layer, label)) / state.at(0);
  weight.set(first, weight.at(first) + by);
}

}  // namespace lossgate::properties
