// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "reference/losses/options.h"
#include "reference/losses/row_terms.h"
#include "reference/products.h"

namespace lossgate::reference {

/// Cross-entropy of supervised fine-tuning, with label smoothing and z-loss.
///
/// Formula: with l = log_softmax(logits) and a = label_smoothing,
///   x[s,t] = -(1 - a) l[label] - a / V sum_v l[v] + z_loss logsumexp(logits)^2, reduced over
///   positions whose label is not -100.
/// Shapes: logits [sequences, tokens, vocab], label [sequences, tokens]. Units: nats.
/// Gradient: for logits: p (1 + 2 z_loss logsumexp) - a / V - (1 - a) delta_label; zero where
///   masked.
/// Error: a taken token of logit -infinity costs infinity, and so does, where a > 0, any token: the
///   smoothing is over the whole vocabulary. The gradient stays finite. With a = 0 the others are
///   not looked at. Where the average logit is subtracted from logsumexp(x), a common offset is
///   rounded as often as there are tokens.
/// Source: PyTorch `cross_entropy` (ignore_index, label_smoothing); transformers
///   `ForCausalLMLoss`; Liger `ops/cross_entropy.py` (lse_square_scale); PaLM (arXiv:2204.02311)
///   section 5.
struct CrossEntropy {
  static constexpr const char* kDifferenceForm = "logsumexp(x) - sum t x";

  static LossSignature signature() {
    return {
        .id = "cross_entropy",
        .title = "cross-entropy with label smoothing and z-loss",
        .formula = "-(1 - a) l[label] - a / V sum l + z_loss logsumexp(x)^2, l = log_softmax(x)",
        .source = "PyTorch cross_entropy; transformers ForCausalLMLoss; Liger ops/cross_entropy.py",
        .forms = {kShiftedForm, kDifferenceForm},
        .options = {real_option("label_smoothing", 0.0, 0.0, 1.0,
                                "share of the target that all tokens have in equal parts"),
                    real_option("z_loss", 0.0, 0.0, 1.0, "coefficient of logsumexp(x)^2"),
                    num_items_option()},
        .fields = {logits_field("logits", Role::differentiable, "of the model"),
                   label_field("the token to predict")},
        .outputs = {non_negative_per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"|logit|", "logits", ""}},
        .ignore_label = "label",
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto logits = in.field("logits"), label = in.field("label");
    const std::int64_t vocab = in.extent(Axis::vocab);
    const S one = constant<S>(1.0L), z = in.option("z_loss");
    const Target<S> target(in.option("label_smoothing"), vocab);
    const bool shifted = in.form(kShiftedForm), difference = in.form(kDifferenceForm);
    evaluate_by_row(
        in, out, "logits", [&](const S& weight, std::int64_t s, std::int64_t t, bool wanted) {
          const Row<S> x = read_logits(logits, s, t, vocab, one);
          const LogSumExp<S> whole = log_sum_exp(x);
          const S log_sum = stored(whole);
          const Row<S> l = log_softmax(x, whole, shifted);
          const std::int64_t taken = label.integer(s, t);
          const S value =
              (shifted      ? target.cost(l, taken)
               : difference ? target.cost(x, log_sum, taken)
                            : wider(target.cost(l, taken), target.cost(x, log_sum, taken))) +
              product(z, log_sum, log_sum);
          if (!wanted) return RowTerm<S>{value, weight * value, {}};
          Row<S> gradient =
              log_softmax_gradient(l, target.slope(in.upstream(), weight, taken), in.undeclared());
          const S twice = constant<S>(2.0L) * z;
          for (std::int64_t v = 0; v < vocab; ++v) {
            const S share = probability(l[v], in.undeclared());
            gradient[v] += product(in.upstream(), weight, twice, log_sum, share);
          }
          if (in.undeclared()) charge_shift(x, gradient);
          return RowTerm<S>{value, weight * value, std::move(gradient)};
        });
  }

 private:
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
          weighed(rest_, log_sum - x[taken]) + (weighed(smoothing_, log_sum) + smoothed(x)), x,
          taken, log_sum);
    }

    /// The derivative by log-prob of the first.
    Row<S> slope(const S& upstream, const S& weight, std::int64_t taken) const {
      Row<S> g = Row<S>::Constant(vocab_, -product(upstream, weight, share_));
      g[taken] -= product(upstream, weight, rest_);
      return g;
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
};

}  // namespace lossgate::reference
