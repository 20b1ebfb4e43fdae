// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "impl/cuda/host_device.h"

/// The arithmetic of clipped policy losses, one token at a time, for host and device. F is float or
/// double; 16-bit inputs are widened before they come here.
///
/// Two habits keep the chain rule finite. A derivative that a clip or a clamp has stopped is an
/// exact 0, and an exact 0 is never multiplied (see `scaled`), so no 0 * infinity can arise. And a
/// comparison is written so that NaN takes the branch that hands it on.
namespace lossgate::impl {

/// A bound that may be absent.
template <class F>
struct Limit {
  bool bounded = false;
  F at = F(0);
};

/// a * b, where a factor of exactly 0 silences the other, whatever it is.
template <class F>
LOSSGATE_HOST_DEVICE inline F scaled(F a, F b) {
  return a == F(0) || b == F(0) ? F(0) : a * b;
}

/// The mean of `count` terms with this sum, times a slope that they share. What is small is not
/// divided: the smallest numbers have few digits, and a share of them none.
template <class F>
LOSSGATE_HOST_DEVICE inline F mean_times(F sum, F slope, F count) {
  const bool small = slope > F(-1) && slope < F(1);
  return small ? scaled(sum / count, slope) : scaled(sum, slope / count);
}

template <class F>
LOSSGATE_HOST_DEVICE inline F clamped(F x, Limit<F> limit) {
  if (!limit.bounded) return x;
  return x < -limit.at ? -limit.at : x > limit.at ? limit.at : x;
}

/// Whether clamp hands the gradient on: on the closed interval.
template <class F>
LOSSGATE_HOST_DEVICE inline bool passes(F x, Limit<F> limit) {
  return !limit.bounded || !(x < -limit.at || x > limit.at);
}

/// exp(clamp(log_ratio)) with its derivative with respect to log_ratio.
template <class F>
struct ImportanceWeight {
  F log_value, value, slope;
};

template <class F>
LOSSGATE_HOST_DEVICE inline ImportanceWeight<F> importance_weight(F log_ratio, Limit<F> limit) {
  using std::exp;
  const F log_value = clamped(log_ratio, limit);
  const F value = exp(log_value);
  return {log_value, value, passes(log_ratio, limit) ? value : F(0)};
}

template <class F>
struct ClipRange {
  F low = F(0), high = F(0);  ///< 1 - clip_low, 1 + clip_high
  Limit<F> dual = {};
};

/// A term with its derivative with respect to the importance weight.
template <class F>
struct Surrogate {
  F value, slope;
};

/// -A min(w, high) for A > 0 and -A min(max(w, low), dual) for A < 0: PPO's clipped surrogate with
/// the sign of A decided first, so that a clipped weight is never multiplied.
template <class F>
LOSSGATE_HOST_DEVICE inline Surrogate<F> clipped_surrogate(F weight, F advantage,
                                                           const ClipRange<F>& clip) {
  if (advantage == F(0)) return {F(0), F(0)};
  if (advantage > F(0)) {
    const bool clips = weight > clip.high;
    return {-advantage * (clips ? clip.high : weight), clips ? F(0) : -advantage};
  }
  if (weight < clip.low) return {-advantage * clip.low, F(0)};
  if (clip.dual.bounded && weight > clip.dual.at) return {-advantage * clip.dual.at, F(0)};
  return {-advantage * weight, -advantage};
}

}  // namespace lossgate::impl
