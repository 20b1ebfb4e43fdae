// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/linear_cross_entropy_eager.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "impl/faulty/output_layer.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

using Fault = LinearCrossEntropyFault;

template <class V>
class EagerLinearCrossEntropy {
 public:
  EagerLinearCrossEntropy(MicroBatch& micro_batch, const EagerLinearCrossEntropyOptions& options)
      : batch_(micro_batch),
        options_(options),
        layer_(micro_batch, is(Fault::weight_gradient_in_16_bits)) {}

  LossResult run() {
    return layer_.taken_back(cost(),
                             [this](const Tensor& by_logit) { return slopes_of(by_logit); });
  }

 private:
  bool is(Fault fault) const { return options_.fault == fault; }
  bool valid(std::int64_t at) const {
    return batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
  }
  std::int64_t label(std::int64_t at) const { return batch_.part.batch.at("label").integer_at(at); }

  V logit(std::int64_t at, std::int64_t v) const {
    const bool plain = is(Fault::bias_of_taken_alone) && v != label(at);
    return plain ? layer_.plain_logit(at, v) : layer_.logit(at, v);
  }

  /// The eager cross-entropy on the logits, with its gradient by these as its last output.
  LossResult cost() const {
    const std::int64_t vocab = layer_.vocab();
    Extents extents = batch_.part.batch.at("hidden").extents;
    extents.back() = vocab;
    Tensor logits = Tensor::zeros(layer_.wide(), extents);
    for (std::int64_t i = 0; i < logits.size(); ++i) {
      const std::int64_t at = i / vocab;
      if (valid(at)) logits.set(i, static_cast<double>(logit(at, i % vocab)));
    }
    Case part = batch_.part;
    part.batch.fields.emplace_back("logits", std::move(logits));
    MicroBatch inner = batch_.with(part, batch_.positions);
    if (is(Fault::chunk_means_added) && part.spec.reduction == Reduction::token_mean) {
      part.spec.reduction = Reduction::sequence_mean;
      inner.totals.sequences = 1;
    }
    return eager_cross_entropy(inner, options_.cost);
  }

  typename EagerLayer<V>::Slopes slopes_of(const Tensor& by_logit) const {
    typename EagerLayer<V>::Slopes slopes(static_cast<std::size_t>(layer_.positions()));
    for (std::int64_t at = 0; at < layer_.positions(); ++at) {
      if (!valid(at)) continue;
      const double least = is(Fault::gradient_filtered) ? std::ldexp(scale_of(at), -12) : 0.0;
      for (std::int64_t v = 0; v < layer_.vocab(); ++v) {
        const double g = by_logit.at(at * layer_.vocab() + v);
        slopes[static_cast<std::size_t>(at)].push_back(
            static_cast<V>(std::fabs(g) < least ? 0 : g));
      }
    }
    return slopes;
  }

  /// Of a slope whose probability is 1.
  double scale_of(std::int64_t at) const {
    const std::int64_t row = at / batch_.part.shape[Axis::tokens];
    const std::int64_t own = batch_.positions.row_tokens[static_cast<std::size_t>(row)];
    return std::fabs(batch_.part.upstream) *
           token_weight<double>(batch_.part.spec, batch_.totals, own);
  }

  MicroBatch& batch_;
  EagerLinearCrossEntropyOptions options_;
  EagerLayer<V> layer_;
};

}  // namespace

LossResult eager_linear_cross_entropy(MicroBatch& micro_batch,
                                      const EagerLinearCrossEntropyOptions& options) {
  return float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64
             ? EagerLinearCrossEntropy<double>(micro_batch, options).run()
             : EagerLinearCrossEntropy<float>(micro_batch, options).run();
}

}  // namespace lossgate::impl
