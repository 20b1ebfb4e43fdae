// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reference/losses/options.h"
#include "reference/products.h"
#include "reference/rows.h"
#include "reference/stored_parts.h"

/// What it costs to predict a token: cross-entropy with label smoothing and z-loss, of one row.
namespace lossgate::reference {

inline constexpr const char* kDifferenceForm = "logsumexp(x) - sum t x";

inline std::vector<Option> target_cost_options() {
  return {real_option("label_smoothing", 0.0, 0.0, 1.0,
                      "share of the target that all tokens have in equal parts"),
          real_option("z_loss", 0.0, 0.0, 1.0, "coefficient of logsumexp(x)^2"),
          num_items_option()};
}

/// The distribution to predict: `rest` for the taken token, and `share` for each of all.
template <class S>
class Target {
 public:
  Target(const S& smoothing, std::int64_t vocab)
      : smoothing_(smoothing),
        share_(smoothing / constant<S>(static_cast<Real>(vocab))),
        rest_(constant<S>(1.0L) - smoothing),
        vocab_(vocab) {}

  /// -sum t l
  S cost(const Row<S>& l, std::int64_t taken) const {
    return or_in_one_sum(weighed(rest_, -l[taken]) + smoothed(l), l, taken, S(0));
  }

  /// log_sum - sum t x
  S cost(const Row<S>& x, const S& log_sum, std::int64_t taken) const {
    return or_in_one_sum(
        weighed(rest_, log_sum - x[taken]) + (weighed(smoothing_, log_sum) + smoothed(x)), x, taken,
        log_sum);
  }

  /// The derivative by log-prob of the first.
  Row<S> slope(const S& upstream, const S& weight, std::int64_t taken) const {
    Row<S> g = Row<S>::Constant(vocab_, -product(upstream, weight, share_));
    g[taken] -= product(upstream, weight, rest_);
    return g;
  }

  /// p of the taken token less its target as (p - 1) + (1 - share - rest): that keeps the digits of
  /// a likely token, and loses those of a small target.
  S excess_from_one(const S& p) const {
    const S one = constant<S>(1.0L);
    return (p - one) + (one - (share_ + rest_));
  }

 private:
  /// What is `apart`, or start - sum t x with the taken token's term among all others, which are
  /// rounded at its size.
  S or_in_one_sum(const S& apart, const Row<S>& x, std::int64_t taken, const S& start) const {
    if (value_of(smoothing_) == 0) return apart;
    Sum<S> sum(vocab_);
    for (std::int64_t v = 0; v < vocab_; ++v) {
      sum.add(weighed(v == taken ? share_ + rest_ : share_, -x[v]));
    }
    return wider(apart, start + sum.value());
  }

  /// -share sum x, whether the entries are scaled or their sum.
  S smoothed(const Row<S>& x) const {
    Sum<S> sum(vocab_);
    for (std::int64_t v = 0; v < vocab_; ++v) sum.add(weighed(share_, -x[v]));
    return sum.scaled(share_);
  }

  S smoothing_, share_, rest_;
  std::int64_t vocab_;
};

/// The cost of a row of logits with its gradient by these, in the form that the arithmetic
/// declares, or as the widest.
template <class S>
class TargetCost {
 public:
  /// Cross-entropy and z-loss may each widen logits that are a field by themselves: either hands
  /// its gradient back as the field has it.
  enum class Logits { computed, a_field };

  TargetCost(const Inputs<S>& in, Logits logits)
      : in_(in),
        handed_back_apart_(logits == Logits::a_field && in.spec().number("z_loss") != 0.0),
        z_(in.option("z_loss")),
        target_(in.option("label_smoothing"), in.extent(Axis::vocab)),
        shifted_(in.form(kShiftedForm)),
        difference_(in.form(kDifferenceForm)) {}

  /// `weight`: the factor of the cost in the loss, which its gradient has. That is empty where
  /// nobody wants it.
  RowFunction<S> operator()(const Row<S>& x, std::int64_t taken, const S& weight,
                            bool wanted) const {
    const LogSumExp<S> whole = log_sum_exp(x);
    const S log_sum = stored(whole);
    const Row<S> l =
        log_softmax(x, whole, difference_ ? SoftmaxForm::by_logsumexp : softmax_form(in_));
    const S of_target = cost(x, l, log_sum, taken), of_square = product(z_, log_sum, log_sum);
    const S value = of_stored_parts(Stage::per_token, S(of_target + of_square), of_target,
                                    of_square, S(log_sum * log_sum));
    if (!wanted) return {value, {}};
    Row<S> gradient =
        log_softmax_gradient(l, target_.slope(in_.upstream(), weight, taken), in_.undeclared());
    if (in_.undeclared()) {
      const S excess = target_.excess_from_one(probability(l[taken], true));
      gradient[taken] = wider(gradient[taken], product(in_.upstream(), weight, excess));
    }
    const S twice = constant<S>(2.0L) * z_;
    const S by_log_sum = product(in_.upstream(), weight, twice, log_sum);
    const S by_square = product(in_.upstream(), weight, z_);
    Row<S> of_z(handed_back_apart_ ? x.size() : 0);
    for (Eigen::Index v = 0; v < x.size(); ++v) {
      const S share = probability(l[v], in_.undeclared());
      const S whole_part = product(in_.upstream(), weight, twice, log_sum, share);
      const S part = stored_within(
          Stage::log_prob, stored_within(Stage::per_token, whole_part, by_square), by_log_sum);
      gradient[v] += part;
      if (handed_back_apart_) of_z[v] = part;
    }
    if (in_.undeclared()) charge_shift(x, gradient);
    for (Eigen::Index v = 0; handed_back_apart_ && v < x.size(); ++v) {
      gradient[v] = stored_apart(Stage::gradient, gradient[v], [&] { return of_z[v]; });
    }
    return {value, std::move(gradient)};
  }

 private:
  S cost(const Row<S>& x, const Row<S>& l, const S& log_sum, std::int64_t taken) const {
    if (shifted_) return target_.cost(l, taken);
    if (difference_) return target_.cost(x, log_sum, taken);
    return wider(target_.cost(l, taken), target_.cost(x, log_sum, taken));
  }

  const Inputs<S>& in_;
  bool handed_back_apart_;
  S z_;
  Target<S> target_;
  bool shifted_, difference_;
};

}  // namespace lossgate::reference
