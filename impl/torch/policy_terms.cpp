// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/policy_terms.h"

#include <limits>

#include "impl/torch/reductions.h"

namespace lossgate::impl {
namespace {

/// Comparisons with NaN are false, so NaN is never "outside" and stays visible.
at::Tensor exceeds(const at::Tensor& x, double limit) { return x.abs() > limit; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Surrogate {
  at::Tensor value;
  at::Tensor weight_slope;
};

/// -min(w A, clamp(w) A), bounded below by -dual_clip A where A < 0.
Surrogate clipped_surrogate(const ImportanceWeight& weight, const at::Tensor& advantage,
                            const PolicyOptions& options) {
  const at::Tensor& w = weight.value;
  const double low = 1.0 - options.clip_low, high = 1.0 + options.clip_high;
  const at::Tensor rewarded = advantage > 0;
  at::Tensor raised = w.clamp_min(low), below = w < low;
  if (const auto ceiling = options.dual_clip) {
    raised.clamp_max_(*ceiling);
    below.logical_or_(w > *ceiling);
  }
  at::Tensor value = at::where(rewarded, w.clamp_max(high), raised).mul_(advantage).neg_();
  const at::Tensor outside = at::where(rewarded, w > high, below);
  // Zeros decide, whatever they meet.
  value.masked_fill_(advantage == 0, 0);
  if (weight.vanished.defined()) value.masked_fill_(rewarded.logical_and(weight.vanished), 0);
  return {value, advantage.neg().masked_fill_(outside, 0)};
}

struct Estimate {
  at::Tensor value, slope;
};

/// The estimator and its derivative with respect to log_prob, that is minus the one for x.
Estimate estimate(const at::Tensor& x, const KlOptions& options) {
  switch (options.estimator) {
    case KlEstimator::k1:
      return {-x, at::ones_like(x)};
    case KlEstimator::k2:
      return {(0.5 * x).mul_(x), -x};
    case KlEstimator::k3:
      break;
  }
  const at::Tensor grown = x.expm1();
  // Beyond 1000 exp is infinite in every format; the cap keeps an infinite x from giving inf - inf.
  const at::Tensor value = grown - (options.input_clamp ? x : x.clamp_max(1000.0));
  return {value, -grown};
}

/// x times the weight, 0 where either is: an unbounded weight may be infinite, and x NaN where a
/// log-prob is -inf in both policies. A NaN weight stays visible, whatever x. A weight that only
/// underflowed leaves x infinite where the reference policy makes it so.
at::Tensor weighted(const at::Tensor& x, const ImportanceWeight& weight,
                    const at::Tensor& ref_log_prob) {
  at::Tensor product = x * weight.value;
  if (!weight.vanished.defined()) return product;
  const at::Tensor silent = (x == 0).logical_and_(weight.value == kInfinity);
  const at::Tensor impossible = at::where(ref_log_prob.isinf(), x, 0.0);
  product = at::where(x.isinf().logical_and_(weight.value == 0), impossible, product);
  return product.masked_fill_(silent.logical_or_(weight.vanished), 0);
}

/// Where an estimate of a finite x overflows, a small weight brings it back: of k3 exp(x) alone is
/// left, and its slope; the square of k2 is formed last. The estimate is then the derivative by the
/// weight's logarithm; the one by the weight is infinite.
void bring_back(KlTerms& kl, const at::Tensor& x, const ImportanceWeight& weight,
                const KlOptions& options) {
  if (options.input_clamp || options.estimator == KlEstimator::k1) return;
  const at::Tensor lost = kl.weight_slope.isinf().logical_and_(x.isfinite());
  at::Tensor product;
  if (options.estimator == KlEstimator::k2) {
    product = (0.5 * x * weight.value).mul_(x);
  } else {
    product = (weight.log + x).exp_();
    kl.slope = at::where(lost, -product, kl.slope);
  }
  kl.value = at::where(lost, product, kl.value);
  kl.weight_slope = at::where(lost, 0.0, kl.weight_slope);
  kl.log_weight_slope = at::where(lost, product, 0.0);
}

}  // namespace

void check_limit(std::optional<double> limit, double least, const char* argument) {
  TORCH_CHECK(!limit || *limit >= least, argument, " must be at least ", least, ", got ", *limit);
}

void check_kl_options(const KlOptions& options) {
  check_limit(options.input_clamp, 0.0, "kl_input_clamp");
  check_limit(options.output_clamp, 0.0, "kl_output_clamp");
}

void check_policy_options(const PolicyOptions& options) {
  TORCH_CHECK(options.clip_low >= 0.0 && options.clip_low <= 1.0,
              "clip_low must lie in [0, 1], got ", options.clip_low);
  check_limit(options.clip_high, 0.0, "clip_high");
  check_limit(options.dual_clip, 1.0, "dual_clip");
  check_limit(options.log_ratio_clamp, 0.0, "log_ratio_clamp");
  check_kl_options(options.kl);
}

ImportanceWeight importance_weight(const at::Tensor& log_ratio, std::optional<double> clamp) {
  if (!clamp) return {log_ratio.exp(), log_ratio, {}, log_ratio == -kInfinity};
  const at::Tensor bounded = log_ratio.clamp(-*clamp, *clamp);
  return {bounded.exp(), bounded, exceeds(log_ratio, *clamp), {}};
}

at::Tensor through_weight(const at::Tensor& weight_slope, const ImportanceWeight& weight) {
  at::Tensor slope = weight_slope * weight.value;
  slope.masked_fill_(weight_slope == 0, 0);
  slope.masked_fill_(weight.clamped.defined() ? weight.clamped : weight.vanished, 0);
  return slope;
}

at::Tensor through_log_weight(const at::Tensor& log_weight_slope, const ImportanceWeight& weight) {
  const at::Tensor fixed = weight.clamped.defined() ? weight.clamped : weight.vanished;
  return log_weight_slope.masked_fill(fixed, 0);
}

KlEstimator parse_kl_estimator(std::string_view text) {
  if (text == "k1") return KlEstimator::k1;
  if (text == "k2") return KlEstimator::k2;
  TORCH_CHECK(text == "k3", "kl_estimator must be k1, k2 or k3, got '", std::string(text), "'");
  return KlEstimator::k3;
}

bool parse_level(std::string_view text) {
  TORCH_CHECK(text == "token" || text == "sequence", "level must be token or sequence, got '",
              std::string(text), "'");
  return text == "sequence";
}

KlTerms kl_terms(const at::Tensor& log_prob, const at::Tensor& ref_log_prob,
                 const ImportanceWeight& weight, const KlOptions& options) {
  const at::Tensor difference = ref_log_prob - log_prob;
  const at::Tensor x = options.input_clamp
                           ? difference.clamp(-*options.input_clamp, *options.input_clamp)
                           : difference;
  const auto [plain, plain_slope] = estimate(x, options);
  KlTerms kl{plain, plain_slope, {}};
  if (options.weighted) {
    kl = {weighted(plain, weight, ref_log_prob), weighted(plain_slope, weight, ref_log_prob),
          plain};
    bring_back(kl, x, weight, options);
  }
  if (options.input_clamp) kl.slope.masked_fill_(exceeds(difference, *options.input_clamp), 0);
  if (options.output_clamp) {
    const at::Tensor outside = exceeds(kl.value, *options.output_clamp);
    kl.slope.masked_fill_(outside, 0);
    if (options.weighted) kl.weight_slope = kl.weight_slope.masked_fill(outside, 0);
    if (kl.log_weight_slope.defined()) kl.log_weight_slope.masked_fill_(outside, 0);
    kl.value.clamp_(-*options.output_clamp, *options.output_clamp);
  }
  return kl;
}

PolicyTerms policy_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                         const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                         const at::Tensor& valid, const PolicyOptions& options) {
  const at::Tensor ignored = valid.logical_not();
  at::Tensor log_ratio = log_prob - old_log_prob, counts;
  if (options.sequence_level) {
    counts = row_counts(valid).clamp_min_(1).to(log_ratio.scalar_type());
    log_ratio = log_ratio.sum(1, /*keepdim=*/true).div_(counts);
  }
  const ImportanceWeight weight = importance_weight(log_ratio, options.log_ratio_clamp);
  auto [value, weight_slope] = clipped_surrogate(weight, advantage, options);
  at::Tensor own, log_slope;
  if (options.kl_penalty != 0.0) {
    const KlTerms kl = kl_terms(log_prob, ref_log_prob, weight, options.kl);
    value.add_(kl.value * options.kl_penalty);
    own = kl.slope.mul_(options.kl_penalty);
    if (options.kl.weighted) weight_slope.add_(kl.weight_slope * options.kl_penalty);
    if (kl.log_weight_slope.defined()) {
      log_slope = through_log_weight(kl.log_weight_slope, weight).mul_(options.kl_penalty);
    }
  }
  value.masked_fill_(ignored, 0);
  if (options.sequence_level) {
    at::Tensor row_slope = weight.value;
    if (weight.clamped.defined()) row_slope = row_slope.masked_fill(weight.clamped, 0);
    if (own.defined()) own.masked_fill_(ignored, 0);
    if (log_slope.defined()) log_slope.masked_fill_(ignored, 0);
    return {value, own, weight_slope.masked_fill_(ignored, 0), row_slope, log_slope};
  }
  at::Tensor slope = through_weight(weight_slope, weight);
  if (own.defined()) slope.add_(own);
  if (log_slope.defined()) slope.add_(log_slope);
  return {value, slope.masked_fill_(ignored, 0), {}, {}, {}};
}

}  // namespace lossgate::impl
