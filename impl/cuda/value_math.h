// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/policy_math.h"

namespace lossgate::impl {

template <class F>
struct ValueOptions {
  Limit<F> clip = {};
  bool around_old = true;  ///< else clamped to the interval around old_value
};

/// The clipped value loss of one position and its derivative with respect to the value, which is
/// `share` of `slope`: apart, as half of the smallest number is none.
template <class F>
struct ValueTerm {
  F value, slope, share;
};

template <class F>
LOSSGATE_HOST_DEVICE inline F size_of(F x) {
  return x < F(0) ? -x : x;
}

/// x^2 / 2 of a size: halved where it neither underflows nor lets the square overflow.
template <class F>
LOSSGATE_HOST_DEVICE inline F half_square(F size) {
  return size <= F(1) ? F(0.5) * (size * size) : (F(0.5) * size) * size;
}

template <class F>
struct ClippedValue {
  F value;
  bool passes;  ///< whether the gradient goes through: on the closed interval
};

/// A NaN in old_value is no bound, but must show.
template <class F>
LOSSGATE_HOST_DEVICE inline ClippedValue<F> clipped_value(F value, F old_value,
                                                          const ValueOptions<F>& options) {
  if (options.around_old) {
    const F moved = value - old_value;
    return {old_value + clamped(moved, options.clip), passes(moved, options.clip)};
  }
  if (old_value != old_value) return {old_value, true};
  const F low = old_value - options.clip.at, high = old_value + options.clip.at;
  return {value < low ? low : value > high ? high : value, !(value < low || value > high)};
}

/// The larger of two squares, compared by size: squares overflow and underflow. On a tie each has
/// half of the gradient.
template <class F>
LOSSGATE_HOST_DEVICE inline ValueTerm<F> value_term(F value, F old_value, F target,
                                                    const ValueOptions<F>& options) {
  const F distance = value - target;
  if (!options.clip.bounded) return {half_square(size_of(distance)), distance, F(1)};
  const ClippedValue<F> clip = clipped_value(value, old_value, options);
  const F other = clip.value - target, through = clip.passes ? other : F(0);
  const F plain = size_of(distance), clipped = size_of(other);
  if (plain > clipped) return {half_square(plain), distance, F(1)};
  if (plain < clipped) return {half_square(clipped), through, F(1)};
  if (plain != clipped) return {distance + other, distance + other, F(1)};  // NaN
  if (!clip.passes) return {half_square(plain), distance, F(0.5)};
  return {half_square(plain), distance == other ? distance : F(0), F(1)};
}

}  // namespace lossgate::impl
