// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/grpo_host.h"

#include <cmath>
#include <limits>
#include <vector>

#include "impl/cuda/grpo_options.h"
#include "impl/cuda/host_fields.h"
#include "impl/pairwise_sum.h"
#include "impl/token_weight.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

/// One micro-batch. Masked positions are neither read nor computed.
template <class F>
class GrpoLoop {
 public:
  explicit GrpoLoop(MicroBatch& micro_batch)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        options_(read_grpo_options<F>(spec_)),
        log_prob_(micro_batch.part.batch.at("log_prob")),
        old_log_prob_(micro_batch.part.batch.at("old_log_prob")),
        ref_log_prob_(micro_batch.part.batch.at("ref_log_prob")),
        advantage_(micro_batch.part.batch.at("advantage")),
        rows_(static_cast<std::size_t>(micro_batch.part.shape[Axis::sequences])),
        tokens_(static_cast<std::size_t>(micro_batch.part.shape[Axis::tokens])) {}

  LossResult run() {
    const Tensor& like = batch_.part.batch.at("log_prob");
    const Dtype wide = sizeof(F) == 8 ? Dtype::f64 : Dtype::f32;
    Tensor loss = Tensor::zeros(wide, {});
    Tensor per_token = Tensor::zeros(wide, like.extents);
    Tensor gradient = Tensor::zeros(like.dtype, like.extents);
    terms_.assign(rows_ * tokens_, F(0));
    row_terms_.resize(tokens_);
    const HostOutput<F> values(per_token), gradients(gradient);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (batch_.positions.row_tokens[row] == 0) continue;
      if (options_.sequence_level) {
        sequence_row(row, values, gradients);
      } else {
        token_row(row, values, gradients);
      }
    }
    HostOutput<F>(loss).set(0, overflow_free_sum(terms_.data(), terms_.size()));
    LossResult result;
    result.outputs.reserve(3);
    if (spec_.reduction != Reduction::none) result.outputs.push_back({"loss", std::move(loss)});
    result.outputs.push_back({"per_token", std::move(per_token)});
    result.outputs.push_back({"gradient.log_prob", std::move(gradient)});
    return result;
  }

 private:
  bool valid(std::size_t at) const { return batch_.positions.valid[at] != 0; }

  GrpoToken<F> token(std::size_t at) const {
    return {log_prob_[at], old_log_prob_[at], ref_log_prob_[at], advantage_[at]};
  }

  F weight_of(std::size_t row) const {
    return token_weight<F>(spec_, batch_.totals, batch_.positions.row_tokens[row]);
  }

  void token_row(std::size_t row, const HostOutput<F>& values, const HostOutput<F>& gradients) {
    const F weight = weight_of(row), scale = static_cast<F>(batch_.part.upstream) * weight;
    for (std::size_t at = row * tokens_; at < (row + 1) * tokens_; ++at) {
      if (!valid(at)) continue;
      const GrpoToken<F> t = token(at);
      const auto importance = importance_weight(t.log_prob - t.old_log_prob, options_.log_ratio);
      const GrpoTerm<F> term = grpo_term(t, importance, options_);
      values.set(at, term.value);
      terms_[at] = weight * term.value;
      gradients.set(at, grpo_gradient(term, importance, scale));
    }
  }

  /// The mean log-ratio as a sum of shares, so that it overflows only where the mean does.
  F mean_log_ratio(std::size_t row) {
    const F count = static_cast<F>(batch_.positions.row_tokens[row]);
    for (std::size_t i = 0; i < tokens_; ++i) {
      const std::size_t at = row * tokens_ + i;
      row_terms_[i] = valid(at) ? (log_prob_[at] - old_log_prob_[at]) / count : F(0);
    }
    return overflow_free_sum(row_terms_.data(), tokens_);
  }

  void sequence_row(std::size_t row, const HostOutput<F>& values, const HostOutput<F>& gradients) {
    const F weight = weight_of(row), scale = static_cast<F>(batch_.part.upstream) * weight;
    const auto importance = importance_weight(mean_log_ratio(row), options_.log_ratio);
    weight_slopes_.assign(tokens_, F(0));
    log_weight_slopes_.assign(tokens_, F(0));
    for (std::size_t i = 0; i < tokens_; ++i) {
      const std::size_t at = row * tokens_ + i;
      if (!valid(at)) continue;
      const GrpoTerm<F> term = grpo_term(token(at), importance, options_);
      values.set(at, term.value);
      terms_[at] = weight * term.value;
      weight_slopes_[i] = term.weight_slope;
      log_weight_slopes_[i] = scaled(scale, term.log_weight_slope);
      row_terms_[i] = scaled(scale, term.slope);
    }
    const F shared = shared_gradient(scale, importance.slope, row);
    for (std::size_t i = 0; i < tokens_; ++i) {
      const std::size_t at = row * tokens_ + i;
      if (valid(at)) gradients.set(at, shared + row_terms_[i]);
    }
  }

  /// What every token of the row gets through the shared weight. The terms are scaled before they
  /// are added, so that large advantages do not overflow, unless that would lose small ones.
  F shared_gradient(F scale, F weight_slope, std::size_t row) {
    const F count = static_cast<F>(batch_.positions.row_tokens[row]);
    const F later = overflow_free_sum(log_weight_slopes_.data(), tokens_) / count;
    const F unscaled = overflow_free_sum(weight_slopes_.data(), tokens_);
    for (F& term : weight_slopes_) term = scaled(scale, term);
    const F through = overflow_free_sum(weight_slopes_.data(), tokens_);
    if (std::fabs(scale) < F(1) && std::fabs(through) < std::numeric_limits<F>::min()) {
      return scaled(scale, mean_times(unscaled, weight_slope, count)) + later;
    }
    return mean_times(through, weight_slope, count) + later;
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  GrpoOptions<F> options_;
  HostField<F> log_prob_, old_log_prob_, ref_log_prob_, advantage_;
  std::size_t rows_, tokens_;
  std::vector<F> terms_, row_terms_, weight_slopes_, log_weight_slopes_;
};

LossResult grpo_step(MicroBatch& micro_batch) {
  if (float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64) {
    return GrpoLoop<double>(micro_batch).run();
  }
  return GrpoLoop<float>(micro_batch).run();
}

}  // namespace

Implementation grpo_host() {
  Implementation host;
  host.name = "host";
  host.loss = "grpo";
  host.source = {"impl/cuda/grpo_math.h", 31};
  host.unsupported = [](const Case&) { return std::nullopt; };
  host.arithmetic = [](Dtype dtype) {
    return plain_arithmetic(dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, "expm1(x) - x, closed");
  };
  host.evaluate = [](const LossSignature& signature, const Case& c) {
    return train(signature, c, grpo_step);
  };
  return host;
}

}  // namespace lossgate::impl
