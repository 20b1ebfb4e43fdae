// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string_view>

#include "reference/one_plus.h"
#include "reference/problem.h"
#include "reference/products.h"
#include "reference/stored_bounds.h"

namespace lossgate::reference {

/// A function of one variable, with its derivative.
template <class S>
struct Term {
  S value;
  S slope;
};

/// clamp(x, -limit, limit) for an option that may be none, which bounds nothing.
template <class S>
class Limit {
 public:
  Limit(const Inputs<S>& in, std::string_view option)
      : bounded_(!in.spec().is_none(option)),
        high_(bounded_ ? in.option(option) : S(0)),
        low_(-high_) {}

  /// Of what is stored at that stage, before it is clamped or after.
  Limit(const Inputs<S>& in, std::string_view option, Stage stage) : Limit(in, option) {
    if (!bounded_) return;
    high_ = stored_bound(stage, high_, in.spec().number(option));
    low_ = -high_;
  }

  bool bounded() const { return bounded_; }

  /// With the derivative with respect to x.
  Term<S> operator()(const S& x) const {
    const auto inside = compare(absolute(x), high_) == Order::below;
    return choose(
        inside,
        [&] {
          return Term<S>{x, selected<S>(1.0)};
        },
        [&] {
          return Term<S>{clamp(x, low_, high_), clamp_slope(x, low_, high_)};
        });
  }

 private:
  bool bounded_;
  S high_, low_;
};

/// exp(clamp(log_ratio, -limit, limit)), the importance weight; unbounded where limit is none.
template <class S>
class ImportanceWeight {
 public:
  explicit ImportanceWeight(const Inputs<S>& in) : limit_(in, "log_ratio_clamp", Stage::log_prob) {}

  Term<S> operator()(const S& log_ratio) const {
    if (!limit_.bounded()) {
      const S weight = exp(log_ratio);
      return {weight, weight};
    }
    const Term<S> clamped = limit_(log_ratio);
    const S weight = exp(clamped.value);
    return {weight, weight * clamped.slope};
  }

 private:
  Limit<S> limit_;
};

/// The log-ratio of a policy to itself, as a constant: 0, whatever the log-prob is off by, and NaN
/// of one that is no number. Where it may overflow on its way, NaN is as right.
template <class S>
S own_log_ratio(const S& log_prob) {
  return log_prob - stop_gradient(log_prob);
}

inline Tracked own_log_ratio(const Tracked& log_prob) {
  const Tracked zero = log_prob - log_prob;
  return is_nan(zero) ? zero : tracking::zero_times(log_prob.peak > tracking::largest);
}

/// An option that bounds an importance weight: the number as it is, or the exponential of its
/// logarithm, which is what bounds a weight whose logarithm is clamped. Of 1 both are 1.
template <class S>
S weight_bound(const Inputs<S>& in, std::string_view option) {
  const S given = in.option(option);
  const auto number = static_cast<Real>(in.spec().number(option));
  if (number <= 0.0L || number == 1.0L) return given;
  return wider(given, exp(constant<S>(std::log(number))));
}

/// A gradient, the product of `flowing`, on its way back through an importance weight. The zero of
/// exp(-inf) is computed, unlike that of a clamp: it does not silence what overflows on its way.
template <class S, class... Flowing>
S through(const Term<S>& weight, const Flowing&... flowing) {
  return choose(
      value_of(weight.value) == 0, [&] { return multiplied(product(flowing...), weight.slope); },
      [&] { return product(flowing..., weight.slope); });
}

/// The clipped surrogate of PPO (Schulman et al. 2017, arXiv:1707.06347, eq. 7) with separate clip
/// distances (DAPO, arXiv:2503.14476, eq. 10) and a dual clip (Ye et al. 2020, arXiv:1912.09729,
/// eq. 5):
///   L(w) = -min(w A, clamp(w, 1 - clip_low, 1 + clip_high) A), and, where A < 0 and dual_clip = c,
///   L(w) = min(L(w), -c A).
/// For A > 0 this is -A min(w, 1 + clip_high), for A < 0 it is -A min(max(w, 1 - clip_low), c):
/// inside the clip range both arguments of the outer min are the same number, so its tie is no
/// choice. The gradient flows on closed intervals (A4); at w = c PyTorch's min would hand on half.
template <class S>
class ClippedSurrogate {
 public:
  explicit ClippedSurrogate(const Inputs<S>& in)
      : low_(one_plus<S>(-static_cast<Real>(in.spec().number("clip_low")))),
        high_(one_plus<S>(static_cast<Real>(in.spec().number("clip_high")))),
        dual_(!in.spec().is_none("dual_clip")),
        ceiling_(dual_ ? in.option("dual_clip") : S(0)) {}

  /// With the derivative with respect to w. `scale` is the term's weight in the loss.
  Term<S> operator()(const S& w, const S& advantage, const S& scale) const {
    const auto silent = [&] { return Term<S>{silenced(-advantage, w), silenced(-advantage, w)}; };
    return choose(value_of(advantage) == 0, silent, [&] {
      const S weight = compared_as_product(w, advantage, scale);
      return choose(
          value_of(advantage) > 0, [&] { return rewarded(weight, advantage); },
          [&] { return punished(weight, advantage); });
    });
  }

 private:
  Term<S> rewarded(const S& weight, const S& advantage) const {
    const S bounded = minimum(weight, high_);
    return {-advantage * bounded,
            -advantage * shared(at_most(weight, high_), weight, low_, bounded, advantage)};
  }

  Term<S> punished(const S& weight, const S& advantage) const {
    const S raised = maximum(weight, low_);
    const S flows =
        shared(at_least(weight, low_), weight, high_, minimum(weight, high_), advantage);
    if (!dual_) return {-advantage * raised, -advantage * flows};
    const S bounded = minimum(raised, ceiling_);
    const auto dual = [&] { return S(flows * at_most(raised, ceiling_)); };
    return {-advantage * bounded,
            -advantage * choose(may_overflow(advantage, bounded), &any_share, dual)};
  }

  static S any_share() { return anything_between<S>(0.0, 1.0); }

  /// `flows`, as far as it is sure. Just beyond the bound that does not decide it both arguments of
  /// min may round to one number, and beyond either they are one where they overflow, as `smaller`
  /// times the advantage does: then the clipped one takes half of the gradient, or all of it.
  S shared(const S& flows, const S& weight, const S& bound, const S& smaller,
           const S& advantage) const {
    return choose(
        may_overflow(advantage, smaller),
        [&] {
          const auto from_low = compare(weight, low_), from_high = compare(weight, high_);
          const auto inside = (from_low == Order::above) & (from_high == Order::below);
          return choose(
              inside, [&] { return flows; }, &any_share);
        },
        [&] {
          return choose(
              compare(weight, bound) != Order::undecided, [&] { return flows; },
              [&] { return S(flows * any_share()); });
        });
  }

  S low_, high_;
  bool dual_;
  S ceiling_;
};

}  // namespace lossgate::reference
