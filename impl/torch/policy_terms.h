// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

namespace lossgate::impl {

enum class KlEstimator { k1, k2, k3 };

struct KlOptions {
  KlEstimator estimator = KlEstimator::k3;
  std::optional<double> input_clamp = 20.0;
  std::optional<double> output_clamp = 10.0;
  bool weighted = false;  ///< multiply the estimate by the importance weight
};

KlEstimator parse_kl_estimator(std::string_view text);  ///< refuses an unknown name
bool parse_level(std::string_view text);  ///< whether it is "sequence"; refuses all but "token"

struct PolicyOptions {
  double clip_low = 0.2, clip_high = 0.2;
  std::optional<double> dual_clip = {};
  std::optional<double> log_ratio_clamp = 20.0;
  bool sequence_level = false;
  double kl_penalty = 0.04;
  KlOptions kl = {};
};

/// Refuses a limit below `least`, and one that is no number.
void check_limit(std::optional<double> limit, double least, const char* argument);
void check_kl_options(const KlOptions& options);
void check_policy_options(const PolicyOptions& options);

/// exp(clamp(log-ratio)) of each token, or of each sequence's mean log-ratio.
struct ImportanceWeight {
  at::Tensor value;     ///< [sequences, tokens], or [sequences, 1] at sequence level
  at::Tensor log;       ///< its logarithm, the clamped log-ratio
  at::Tensor clamped;   ///< where the log-ratio is outside its clamp; undefined without one
  at::Tensor vanished;  ///< where an unclamped log-ratio is -inf; undefined with a clamp
};

ImportanceWeight importance_weight(const at::Tensor& log_ratio, std::optional<double> clamp);

/// weight_slope times the derivative of the weight by its log-ratio. Zeros that were selected
/// annihilate: what they meet may be infinite.
at::Tensor through_weight(const at::Tensor& weight_slope, const ImportanceWeight& weight);

/// log_weight_slope where the weight moves with its log-ratio, else 0.
at::Tensor through_log_weight(const at::Tensor& log_weight_slope, const ImportanceWeight& weight);

/// An estimate of KL(policy || reference) and its derivatives with respect to log_prob (the weight
/// held fixed) and the weight; where only its product with the weight is finite, with respect to
/// the logarithm of the weight instead.
struct KlTerms {
  at::Tensor value, slope, weight_slope;
  at::Tensor log_weight_slope = {};  ///< undefined where no such place can be
};

/// `weight` is used where the options ask for it.
KlTerms kl_terms(const at::Tensor& log_prob, const at::Tensor& ref_log_prob,
                 const ImportanceWeight& weight, const KlOptions& options);

/// Value and derivatives of the per-token terms of PPO-clip / GRPO with a KL penalty. Where a clip,
/// a clamp, a zero advantage or the mask decides, derivatives are selected, never multiplied by
/// zero, so nothing that overflowed behind them is felt.
struct PolicyTerms {
  at::Tensor value;         ///< [sequences, tokens], 0 where not valid
  at::Tensor own_slope;     ///< with respect to the token's own log_prob
  at::Tensor weight_slope;  ///< with respect to the sequence's weight; undefined at token level
  at::Tensor row_slope;     ///< of that weight by its log-ratio, the mean of the tokens'
  at::Tensor log_slope;     ///< by way of the logarithm of that weight; may be undefined
};

/// All tensors are in the compute format, and hold safe values where `valid` is false.
PolicyTerms policy_terms(const at::Tensor& log_prob, const at::Tensor& old_log_prob,
                         const at::Tensor& ref_log_prob, const at::Tensor& advantage,
                         const at::Tensor& valid, const PolicyOptions& options);

}  // namespace lossgate::impl
