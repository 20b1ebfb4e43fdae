// SPDX-License-Identifier: Apache-2.0
#include "properties/unlikely_token.h"

#include "properties/output_layer.h"
#include "properties/transforms.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

/// Between these gaps the surprise grows as it does farther out.
constexpr double kLikely = 20.0, kUnlikely = 40.0;

/// Of one position whose state is 1 and nothing else the logits that a layer makes: 0 of the first
/// class, and that of all others.
void put_logits(Case& c, const OutputLayer& layer, double others) {
  Tensor &state = c.batch.at(layer.state), &weight = c.batch.at(layer.weight);
  state = Tensor::zeros(state.dtype, state.extents);
  state.set(0, 1.0);
  weight = Tensor::zeros(weight.dtype, weight.extents);
  if (!layer.bias.empty()) {
    Tensor& bias = c.batch.at(layer.bias);
    bias = Tensor::zeros(bias.dtype, bias.extents);
  }
  for (std::int64_t v = 1; v < c.shape[Axis::vocab]; ++v) set_logit(c, layer, v, others);
}

}  // namespace

std::optional<Surprise> surprise_of(const std::optional<Reading>& reading) {
  if (!reading || reading->entries().empty()) return std::nullopt;
  const ReadEntry& first = reading->entries().front();
  if (reading->kind(first) == OutputKind::gradient) return std::nullopt;
  const LossSpec& spec = reading->given().spec;
  const bool loss = reading->kind(first) == OutputKind::loss;
  const double weight =
      loss ? token_weight(spec, declared_reduction(spec), BatchCounts(reading->study()), 0) : 1.0;
  return Surprise{first.expected / weight, first.actual / weight};
}

std::optional<Reading> UnlikelyToken::at(double gap) const {
  return suspect_.read_if_made(with_gap(gap));
}

std::optional<Reading> UnlikelyToken::of(double surprise) const {
  const auto gap = gap_of(surprise);
  return gap ? at(*gap) : std::nullopt;
}

std::optional<double> UnlikelyToken::gap_of(double surprise) const {
  const auto likely = surprise_of(at(kLikely)), unlikely = surprise_of(at(kUnlikely));
  if (!likely || !unlikely || !(unlikely->formula > likely->formula)) return std::nullopt;
  const double slope = (unlikely->formula - likely->formula) / (kUnlikely - kLikely);
  return kLikely + (surprise - likely->formula) / slope;
}

std::optional<Case> UnlikelyToken::with_gap(double gap) const {
  const LossSignature& signature = suspect_.signature();
  const Plain one = {.padding = false, .few = {Axis::sequences, Axis::tokens}, .at_most = 1};
  auto c = suspect_.plain_case(vocab_ ? Plain{.length = {{Axis::vocab, *vocab_}}} : one);
  if (c && vocab_) {
    if (c->shape[Axis::vocab] != *vocab_) return std::nullopt;
    c = batch_of(signature, *c, {0});
  }
  bool moved = false;
  for (const Field& field : signature.fields) {
    if (!c) break;
    Tensor& tensor = c->batch.at(field.name);
    if (field.name == signature.ignore_label) tensor.set(0, 0.0);
    if (field.quantity != Quantity::logit || tensor.size() != c->shape[Axis::vocab]) continue;
    const bool leaf = field.role == Role::differentiable;
    for (std::int64_t v = 0; v < tensor.size(); ++v) {
      tensor.set(v, v == 0 ? 0.0 : leaf ? gap : -gap);
    }
    moved |= leaf;
  }
  for (const OutputLayer& layer : output_layers(signature)) {
    if (!c || c->batch.at(layer.state).size() != c->shape[Axis::hidden]) break;
    put_logits(*c, layer, layer.leaf ? gap : -gap);
    moved |= layer.leaf;
  }
  return moved ? c : std::nullopt;
}

}  // namespace lossgate::properties
