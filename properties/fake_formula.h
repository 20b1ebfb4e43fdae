// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "properties/fake_grpo.h"

namespace lossgate::properties {

/// NaN wins, as in PyTorch.
template <class F>
F least(F a, F b) {
  return a != a || b != b ? a + b : a < b ? a : b;
}
template <class F>
F most(F a, F b) {
  return a != a || b != b ? a + b : a > b ? a : b;
}
template <class F>
F bounded(F x, F limit) {
  return least(most(x, -limit), limit);
}

/// A zero decides, for both are selected: what it meets may be infinite.
template <class F>
F times(F a, F b) {
  return a == F(0) || b == F(0) ? F(0) : a * b;
}

/// GRPO in the plainest code, computed in F throughout, sums one after the other.
template <class F>
class Fake {
 public:
  Fake(const LossSignature& signature, const Case& c, Flaw flaw, double amount)
      : c_(c),
        flaw_(flaw),
        amount_(static_cast<F>(amount)),
        sequences_(c.shape[Axis::sequences]),
        tokens_(c.shape[Axis::tokens]),
        valid_(valid_positions(signature, c)),
        infos_(outputs_of(signature, c)) {
    per_token_.resize(valid_.size());
    gradient_.resize(valid_.size());
  }

  LossResult run() {
    const std::vector<Split::Part> parts = parts_of_case();
    const F divisor = flaw_ == Flaw::mean_of_means ? static_cast<F>(parts.size()) : F(1);
    F loss = 0;
    for (const Split::Part& part : parts) {
      part_ = &part;
      F share = 0;
      for (std::int64_t s : part.sequences) share = share + row(s);
      loss = loss + share / divisor;
    }
    break_outputs(loss);
    store(loss);
    return std::move(result_);
  }

 private:
  std::vector<Split::Part> parts_of_case() const {
    if (!c_.split.whole()) return c_.split.parts;
    Split::Part all;
    for (std::int64_t s = 0; s < sequences_; ++s) all.sequences.push_back(s);
    return {all};
  }

  std::size_t index(std::int64_t s, std::int64_t t) const {
    return static_cast<std::size_t>(s * tokens_ + t);
  }
  bool valid(std::int64_t s, std::int64_t t) const { return valid_[index(s, t)]; }
  F input(std::string_view field, std::int64_t s, std::int64_t t) const {
    const double value = c_.batch.at(field).at(s * tokens_ + t);
    const bool launders = flaw_ == Flaw::nan_replaced_inputs && !std::isfinite(value);
    return launders ? F(0) : static_cast<F>(value);
  }
  F option(std::string_view name) const { return static_cast<F>(c_.spec.number(name)); }
  bool has(std::string_view name) const { return !c_.spec.is_none(name); }

  std::int64_t row_count(std::int64_t s) const {
    std::int64_t count = 0;
    for (std::int64_t t = 0; t < tokens_; ++t) count += valid(s, t);
    return count;
  }

  /// 1 / N and its kin, over the scope that the flaw leaves.
  F weight(std::int64_t s) const {
    if (c_.spec.reduction == Reduction::sum) return F(1);
    std::int64_t count = 0, live = 0;
    for (std::int64_t r = 0; r < sequences_; ++r) {
      const auto& own = part_->sequences;
      if (flaw_ == Flaw::mean_of_means && std::ranges::find(own, r) == own.end()) continue;
      count += row_count(r);
      live += row_count(r) > 0;
    }
    if (flaw_ == Flaw::padding_counted) count = sequences_ * tokens_;
    if (flaw_ == Flaw::sequence_counted) live = sequences_;
    switch (c_.spec.reduction) {
      case Reduction::token_mean:
        return F(1) / static_cast<F>(count);
      case Reduction::sequence_mean:
        return F(1) / static_cast<F>(live * row_count(s));
      case Reduction::seq_mean_token_sum_norm:
        return (F(1) / static_cast<F>(live)) / option("max_length");
      default:
        return F(1);
    }
  }

  struct Term {
    F value = 0, slope = 0, weight_slope = 0;
  };

  bool clamp_is_late() const { return flaw_ == Flaw::clamped_after_exp; }

  F importance(F log_ratio) const {
    if (!has("log_ratio_clamp")) return std::exp(log_ratio);
    const F limit = option("log_ratio_clamp");
    if (clamp_is_late()) return least(std::exp(log_ratio), std::exp(limit));
    return std::exp(bounded(log_ratio, limit));
  }

  /// d weight / d log_ratio.
  F importance_slope(F log_ratio, F weight) const {
    if (!has("log_ratio_clamp")) return weight;
    const bool flows = std::fabs(log_ratio) <= option("log_ratio_clamp");
    if (clamp_is_late()) return static_cast<F>(flows) * std::exp(log_ratio);
    return flows ? weight : F(0);
  }

  Term surrogate(F w, F a) const {
    const F low = F(1) - option("clip_low"), high = F(1) + option("clip_high");
    if (a == 0 && flaw_ != Flaw::zero_multiplied) return {-a, 0, -a};
    if (a == 0) return {-a * w, 0, -a * w};
    if (a > 0) return {-a * least(w, high), 0, w <= high ? -a : F(0)};
    const F raised = most(w, low);
    if (!has("dual_clip")) return {-a * raised, 0, w >= low ? -a : F(0)};
    const F ceiling = option("dual_clip");
    return {-a * least(raised, ceiling), 0, w >= low && raised <= ceiling ? -a : F(0)};
  }

  Term divergence(F log_prob, F ref, F w) const {
    const F difference = ref - log_prob;
    const bool clamps = has("kl_input_clamp");
    const F x = clamps ? bounded(difference, option("kl_input_clamp")) : difference;
    const std::string& kind = c_.spec.choice("kl_estimator");
    Term kl;
    if (kind == "k1") {
      kl = {-x, 1, 0};
    } else if (kind == "k2") {
      kl = {F(0.5) * x * x, -x, 0};
    } else {
      const F grown = std::expm1(x);
      kl = {grown - x, -grown, 0};
    }
    if (flaw_ == Flaw::kl_biased) kl.value = kl.value + amount_;
    if (clamps && std::fabs(difference) > option("kl_input_clamp")) kl.slope = 0;
    if (c_.spec.number("kl_weighted") != 0.0) {
      kl = {w * kl.value, times(kl.slope, w), kl.value};
    }
    if (has("kl_output_clamp")) {
      const F limit = option("kl_output_clamp");
      if (std::fabs(kl.value) > limit) kl = {kl.value, 0, 0};
      kl.value = bounded(kl.value, limit);
    }
    return kl;
  }

  Term at(std::int64_t s, std::int64_t t, F w) const {
    const std::int64_t from = flaw_ == Flaw::row_reads_neighbour && s > 0 ? s - 1 : s;
    Term term = surrogate(w, input("advantage", from, t));
    const F penalty = option("kl_penalty");
    if (penalty == 0) return term;
    const Term kl = divergence(input("log_prob", s, t), input("ref_log_prob", s, t), w);
    return {term.value + penalty * kl.value, penalty * kl.slope,
            term.weight_slope + times(kl.weight_slope, penalty)};
  }

  F log_ratio(std::int64_t s, std::int64_t t) const {
    return input("log_prob", s, t) - input("old_log_prob", s, t);
  }

  void put_value(std::int64_t s, std::int64_t t, F x) { per_token_[index(s, t)] = x; }
  void put_gradient(std::int64_t s, std::int64_t t, F x) { gradient_[index(s, t)] = x; }

  F row(std::int64_t s) {
    if (row_count(s) == 0) return empty_row(s);
    const F scale = static_cast<F>(c_.upstream) * weight(s);
    return c_.spec.choice("level") == "sequence" ? sequence_row(s, scale) : token_row(s, scale);
  }

  F empty_row(std::int64_t s) {
    F sum = 0;
    for (std::int64_t t = 0; t < tokens_; ++t) sum = sum + masked_term(s, t);
    return flaw_ == Flaw::empty_divided ? sum * weight(s) : sum;
  }

  /// What a masked position adds in spite of its mask.
  F masked_term(std::int64_t s, std::int64_t t) {
    if (flaw_ == Flaw::masked_gradient) put_gradient(s, t, F(1e-6));
    if (flaw_ == Flaw::masked_data_read) return F(1e-4) * input("advantage", s, t);
    if (flaw_ != Flaw::mask_multiplied) return 0;
    const F d = log_ratio(s, t), w = importance(d);
    const Term term = at(s, t, w);
    put_value(s, t, F(0) * term.value);
    put_gradient(s, t, F(0) * (term.weight_slope * importance_slope(d, w) + term.slope));
    return F(0) * term.value;
  }

  F token_row(std::int64_t s, F scale) {
    F sum = 0;
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (!valid(s, t)) {
        sum = sum + masked_term(s, t);
        continue;
      }
      const F d = log_ratio(s, t), w = importance(d);
      const Term term = at(s, t, w);
      put_value(s, t, term.value);
      sum = sum + weight(s) * term.value;
      const F slope = importance_slope(d, w);
      const F through =
          term.weight_slope != F(0) || flaw_ == Flaw::zero_multiplied
              ? clamp_is_late() ? slope * term.weight_slope : times(slope, term.weight_slope)
              : F(0);
      put_gradient(s, t, scale * through + scale * term.slope);
    }
    return sum;
  }

  F sequence_row(std::int64_t s, F scale) {
    const F count = static_cast<F>(row_count(s));
    F sum = 0, total = 0, through = 0;
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (valid(s, t)) total = total + log_ratio(s, t);
    }
    const F mean = total / count, w = importance(mean);
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (!valid(s, t)) {
        sum = sum + masked_term(s, t);
        continue;
      }
      const Term term = at(s, t, w);
      put_value(s, t, term.value);
      sum = sum + weight(s) * term.value;
      through = through + scale * term.weight_slope;
    }
    const F common = times(through, importance_slope(mean, w) / count);
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (valid(s, t)) put_gradient(s, t, common + scale * at(s, t, w).slope);
    }
    return sum;
  }

  void break_outputs(F& loss) {
    const auto every = [&](auto&& change) {
      change(loss);
      for (F& value : per_token_) change(value);
      for (F& value : gradient_) change(value);
    };
    if (flaw_ == Flaw::nan_replaced) every([](F& x) { x = std::isfinite(x) ? x : F(0); });
    bool first = true;
    for (std::size_t i = 0; i < valid_.size(); ++i) {
      if (flaw_ == Flaw::value_biased) per_token_[i] *= F(1) + amount_;
      if (flaw_ == Flaw::slope_biased) gradient_[i] *= F(1) + amount_;
      if (flaw_ == Flaw::one_slope_biased && first && valid_[i]) gradient_[i] *= F(1) + amount_;
      if (flaw_ == Flaw::signal_dead) gradient_[i] = 0;
      if (flaw_ == Flaw::upstream_ignored) gradient_[i] /= static_cast<F>(c_.upstream);
      first &= !valid_[i];
    }
  }

  void store(F loss) {
    for (std::size_t o = 0; o < infos_.size(); ++o) {
      Tensor tensor = Tensor::zeros(infos_[o].dtype, infos_[o].extents);
      if (infos_[o].kind == OutputKind::loss) tensor.set(0, static_cast<double>(loss));
      const auto& from = infos_[o].kind == OutputKind::gradient ? gradient_ : per_token_;
      for (std::int64_t i = 0; infos_[o].kind != OutputKind::loss && i < tensor.size(); ++i) {
        tensor.set(i, static_cast<double>(from[static_cast<std::size_t>(i)]));
      }
      result_.outputs.push_back({infos_[o].name, std::move(tensor)});
    }
  }

  const Case& c_;
  Flaw flaw_;
  F amount_;
  std::int64_t sequences_, tokens_;
  std::vector<bool> valid_;
  std::vector<OutputInfo> infos_;
  LossResult result_;
  const Split::Part* part_ = nullptr;
  std::vector<F> per_token_, gradient_;
};

}  // namespace lossgate::properties
