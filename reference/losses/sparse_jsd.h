// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "reference/losses/divergence.h"
#include "reference/losses/jsd.h"
#include "reference/losses/tail.h"

namespace lossgate::reference {

/// Distillation from a teacher that is known on a few tokens only, with a tail bucket.
///
/// Formula: at each position the support is the listed tokens, a token that repeats an earlier slot
///   being off. With l = log_softmax(student_logits / T) and L = logsumexp of the support:
///   tail: entries are the support plus log(-expm1(min(L, -tail_floor))), on both sides;
///   no tail: support log-probs minus L, on both sides.
///   jensen_shannon of the entries, reduced over positions whose label is not -100.
/// Shapes: student_logits [sequences, tokens, vocab]; support_token and teacher_log_prob
///   [sequences, tokens, support]; label [sequences, tokens]. Units: nats.
/// Gradient: for student_logits, through tail or renormalisation, and softmax. Zero where masked;
///   nothing flows through the tail where its floor holds. Without a tail nothing depends on a
///   logit that is not listed.
/// Contract: at positions that count, teacher_log_prob must be finite where beta > 0; anything else
///   is refused, naming sequence and token. For beta = 0 a missing entry is -infinity.
/// Error: the padding sentinel -infinity goes through tail and divergence to 0 times infinity in
///   the backward if it is masked afterwards; 1 - exp(L) cancels for L near 0.
/// Source: huggingface/trl#5594, `_compute_server_sparse_top_1_divergence_loss`.
struct SparseJsd {
  static LossSignature signature() {
    std::vector<Option> options = jsd_options();
    options.push_back(flag_option("tail", "a bucket for the rest; else both sides are normalised"));
    options.back().standard = 1.0;
    options.push_back(real_option("tail_floor", 1e-7, 1e-12, 0.01, "least mass of the tail"));
    return {
        .id = "sparse_jsd",
        .title = "divergence on a sparse support with a tail bucket",
        .formula = "jensen_shannon of {support, log(-expm1(min(logsumexp(support), -tail_floor)))}",
        .source = "huggingface/trl#5594",
        .forms = joined_forms({kShiftedForm, kLogSumExpForm}, {kOnceForm}),
        .options = std::move(options),
        .fields = {logits_field("student_logits", Role::differentiable, "p"),
                   {.name = "support_token",
                    .role = Role::constant,
                    .quantity = Quantity::label,
                    .axes = {Axis::sequences, Axis::tokens, Axis::support},
                    .dtypes = {Dtype::i64},
                    .doc = "tokens that the teacher answered for; a slot that repeats one is off"},
                   {.name = "teacher_log_prob",
                    .role = Role::constant,
                    .quantity = Quantity::log_prob,
                    .axes = {Axis::sequences, Axis::tokens, Axis::support},
                    .infinity = Infinity::refused,
                    .infinite_where = std::pair("beta", 0.0),
                    .doc = "their log-probs under the teacher"},
                   label_field("only tells which positions count")},
        .outputs = {per_token_output()},
        .reductions = {Reduction::token_mean, Reduction::sum_over_items, Reduction::sum},
        .reach = {{"|logit|", "student_logits", ""}, {"|teacher|", "teacher_log_prob", ""}},
        .ignore_label = "label",
    };
  }

  static std::optional<Refusal> refuse(const Case& c) {
    if (c.spec.number("beta") == 0.0) return std::nullopt;
    const Tensor& teacher = c.batch.at("teacher_log_prob");
    const Tensor& label = c.batch.at("label");
    const std::int64_t support = c.shape[Axis::support], tokens = c.shape[Axis::tokens];
    for (std::int64_t i = 0; i < teacher.size(); ++i) {
      const std::int64_t position = i / support;
      if (label.integer_at(position) == kIgnoreLabel || std::isfinite(teacher.at(i))) continue;
      return Refusal{.argument = "teacher_log_prob",
                     .sequence = position / tokens,
                     .token = position % tokens,
                     .message = "not finite at a required position"};
    }
    return std::nullopt;
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto student = in.field("student_logits"), teacher = in.field("teacher_log_prob"),
               token = in.field("support_token");
    const auto per_token = out.writer("per_token"), gradient = out.gradient("student_logits");
    const std::int64_t vocab = in.extent(Axis::vocab), support = in.extent(Axis::support);
    const S temperature = in.option("temperature");
    const auto beta = static_cast<Real>(in.spec().number("beta"));
    const bool once = in.form(kOnceForm), undeclared = in.undeclared();
    Sum<S> loss = in.batch_sum();
    for (std::int64_t s = 0; s < in.sequences(); ++s) {
      for (std::int64_t t = 0; t < in.tokens(); ++t) {
        if (!in.valid(s, t)) {
          per_token(S(0), s, t);
          for (std::int64_t v = 0; v < vocab; ++v) gradient(S(0), s, t, v);
          continue;
        }
        const std::vector<std::int64_t> tokens = live_slots(token, s, t, support);
        Row<S> x = read_logits(student, s, t, vocab, temperature);
        if (in.spec().number("tail") == 0.0) forget_unlisted(x, tokens);
        const Row<S> l = log_softmax(x, softmax_form(in));
        Row<S> p(slots(tokens)), q(slots(tokens));
        for (std::int64_t k = 0, at = 0; k < support; ++k) {
          if (tokens[static_cast<std::size_t>(k)] < 0) continue;
          p[at] = l[tokens[static_cast<std::size_t>(k)]];
          q[at++] = teacher(s, t, k);
        }
        Entries<S> student_entries(in, p);
        if (undeclared) student_entries.may_add_up(unlisted(l, tokens));
        const Row<S>& of_student = student_entries.entries;
        const Row<S> of_teacher = Entries<S>(in, q).entries;
        const Divergence<S> d = once ? jensen_shannon_once(of_student, of_teacher, beta)
                                     : jensen_shannon(of_student, of_teacher, beta);
        const S weight = in.token_weight(s), scale = in.upstream() * weight;
        per_token(store(Stage::per_token, d.value), s, t);
        loss.add(stored_within(Stage::per_token, weight * d.value, d.value));
        if (!gradient.wanted()) continue;
        const Row<S> slope = d.scaled(scale);
        const auto back = [&](const Row<S>& g) { return log_softmax_gradient(l, g, undeclared); };
        Row<S> whole = back(spread(student_entries.back(slope), tokens, vocab));
        if (student_entries.adds_up) {
          // What is off in the tail's slope comes into its tokens, and leaves them again.
          const S by_tail = slope[slope.size() - 1] * student_entries.passes;
          Row<S> shares = student_entries.shares_of_tail(l, tokens);
          for (S& share : shares) share = stored_within(Stage::log_prob, share, S(share * by_tail));
          shares = log_softmax_gradient_at(probabilities(l, undeclared), shares);
          widen(whole, Row<S>(back(spread(slope, tokens, vocab)) + shares * by_tail));
        }
        if (undeclared) charge_shift(x, whole);
        for (std::int64_t v = 0; v < vocab; ++v) {
          const S g = stored_within(Stage::per_token, whole[v], scale);
          gradient(in.gradient(back_to_logits(g, temperature, in.upstream())), s, t, v);
        }
      }
    }
    out.loss(loss);
  }

 private:
  /// The token of each slot, -1 where it repeats an earlier one.
  template <class S>
  static std::vector<std::int64_t> live_slots(const FieldReader<S>& token, std::int64_t s,
                                              std::int64_t t, std::int64_t support) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t k = 0; k < support; ++k) {
      const std::int64_t candidate = token.integer(s, t, k);
      tokens.push_back(listed(tokens, candidate) ? -1 : candidate);
    }
    return tokens;
  }

  static bool listed(const std::vector<std::int64_t>& tokens, std::int64_t token) {
    return std::ranges::find(tokens, token) != tokens.end();
  }

  /// Without a tail nothing depends on a logit that is not listed, be it no number: who
  /// renormalises the listed ones alone never looks at it.
  template <class S>
  static void forget_unlisted(Row<S>& x, const std::vector<std::int64_t>& tokens) {
    for (std::int64_t v = 0; v < x.size(); ++v) {
      if (is_nan(x[v]) && !listed(tokens, v)) x[v] = Entry<S>::stored(-HUGE_VAL, -1);
    }
  }

  /// The log-probs of the tokens that are in no slot.
  template <class S>
  static Row<S> unlisted(const Row<S>& l, const std::vector<std::int64_t>& tokens) {
    Row<S> rest(l.size() - slots(tokens));
    for (std::int64_t v = 0, at = 0; v < l.size(); ++v) {
      if (!listed(tokens, v)) rest[at++] = l[v];
    }
    return rest;
  }

  /// What the live slots have in the places of their tokens.
  template <class S>
  static Row<S> spread(const Row<S>& by_slot, const std::vector<std::int64_t>& tokens,
                       std::int64_t vocab) {
    Row<S> row = zero_row<S>(vocab);
    Eigen::Index at = 0;
    for (const std::int64_t token : tokens) {
      if (token >= 0) row[token] = by_slot[at++];
    }
    return row;
  }

  static Eigen::Index slots(const std::vector<std::int64_t>& tokens) {
    return static_cast<Eigen::Index>(tokens.size()) -
           std::count(tokens.begin(), tokens.end(), std::int64_t{-1});
  }

  /// The distribution that is compared, made of support log-probs, and the way back.
  template <class S>
  struct Entries {
    Entries(const Inputs<S>& in, const Row<S>& support)
        : tail(in.spec().number("tail") != 0.0), n(support.size()), entries(n + tail), share(n) {
      mass = log_mass(log_sum_exp(support));
      for (Eigen::Index k = 0; k < n; ++k) {
        share[k] = value_of(support[k]) == -INFINITY ? S(0) : exp_of_share(support[k] - mass);
        entries[k] = tail ? support[k] : support[k] - mass;
      }
      if (!tail) return;
      floor = -in.option("tail_floor");
      entries[n] = log_tail(mass, floor);
      passes = at_most(mass, floor);
      slope = -tail_slope(mass, floor) * passes;
    }

    /// -infinity where nothing is possible: the other side has the whole mass.
    static S log_mass(const LogSumExp<S>& whole) {
      return value_of(whole.shift) == -INFINITY ? whole.shift : whole.shift + whole.log_sum;
    }

    /// The tail may be the sum of what is not listed, which is what is left of 1.
    void may_add_up(const Row<S>& rest) {
      if (adds_up = tail && rest.size() > 0; !adds_up) return;
      left = log_mass(log_sum_exp(rest));
      entries[n] = wider(entries[n], log_tail_of(left, floor));
    }

    /// What each token has of such a sum, listed ones having nothing.
    Row<S> shares_of_tail(const Row<S>& l, const std::vector<std::int64_t>& tokens) const {
      Row<S> result = zero_row<S>(l.size());
      for (Eigen::Index v = 0; v < l.size(); ++v) {
        if (!listed(tokens, v) && value_of(l[v]) != -INFINITY)
          result[v] = exp_of_share(l[v] - left);
      }
      return result;
    }

    /// From the slope by entry to the slope by support log-prob.
    Row<S> back(const Row<S>& g) const {
      Row<S> result(n);
      Sum<S> total(n);
      for (Eigen::Index k = 0; k < n; ++k) total.add(g[k]);
      for (Eigen::Index k = 0; k < n; ++k) {
        result[k] = tail ? g[k] + g[n] * slope * share[k] : g[k] - share[k] * total.value();
      }
      return result;
    }

    bool tail, adds_up = false;
    Eigen::Index n;
    Row<S> entries, share;
    S mass = S(0), slope = S(0);
    S floor = S(0), passes = S(0), left = S(0);  ///< the tail's clamp, and sum of its tokens
  };
};

}  // namespace lossgate::reference
