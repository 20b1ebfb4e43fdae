// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/orpo.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class OrpoFault {
  none,
  log_of_one_less_exp,
  hidden_branch,
  offset,
  odds_as_quotient,
  log_of_sigmoid,
  detached,
  local_means,
};

template <class Format>
class EagerOrpo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerOrpo(MicroBatch& batch, OrpoFault fault) : batch_(batch), in_(batch), fault_(fault) {}

  LossResult run() {
    std::vector<Variable> chosen, rejected, terms, weighted;
    const PositionRules rules{.leaf = "chosen_log_prob",
                              .local_means = fault_ == OrpoFault::local_means};
    for (std::int64_t s = 0; s < batch_.part.shape[Axis::sequences]; ++s) {
      chosen.push_back(tape_.variable(in_.field("chosen_log_prob", s)));
      rejected.push_back(tape_.variable(in_.field("rejected_log_prob", s)));
      terms.push_back(cost(chosen.back(), rejected.back()) * number(in_.option("beta")));
      weighted.push_back(terms.back() * number(weight_of_row<V>(batch_, rules, s)));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return result_by_sequence<Format>(
        tape_, loss, "per_pair", terms,
        {{"chosen_log_prob", chosen}, {"rejected_log_prob", rejected}});
  }

 private:
  Variable number(V x) { return tape_.constant(x); }

  Variable cost(Variable c, Variable r) {
    // Log-odds of a certain answer are infinite in any form, which is another fault.
    const bool certain = c.value() == V(0);
    switch (fault_) {
      case OrpoFault::detached:
        return by_ratio(detach(c), detach(r));
      case OrpoFault::log_of_sigmoid:
        return certain ? by_ratio(c, r) : -log(sigmoid(log_odds_ratio(c, r)));
      case OrpoFault::odds_as_quotient:
        return certain ? by_ratio(c, r) : softplus(-log(odds(c) / odds(r)));
      case OrpoFault::none:
      case OrpoFault::local_means:
        return by_ratio(c, r);
      default:
        return softplus(-log_odds_ratio(c, r));
    }
  }

  /// By the odds of the less likely answer over the other's, 1 at most: what a certain one leaves,
  /// 0, has no logarithm.
  Variable by_ratio(Variable c, Variable r) {
    const bool right = c.value() >= r.value();
    const Variable likely = right ? c : r, unlikely = right ? r : c, gap = unlikely - likely;
    const Variable rest = -expm1(likely), more = -expm1(unlikely);
    const Variable near = log1p(exp(gap) * (rest / more));
    return right ? near : near - (gap + (log(rest) - log(more)));
  }

  Variable log_odds_ratio(Variable c, Variable r) { return (c - r) - (log_rest(c) - log_rest(r)); }

  /// log(1 - exp(x))
  Variable log_rest(Variable x) {
    if (fault_ == OrpoFault::offset) return log(number(V(1.0001)) - exp(x));
    if (fault_ == OrpoFault::log_of_one_less_exp) return log(number(V(1)) - exp(x));
    const bool unlikely = x.value() < V(-0.6931471805599453);
    // Both are there, and one is taken.
    if (fault_ == OrpoFault::hidden_branch) return where(unlikely, log1p(-exp(x)), log(-expm1(x)));
    return unlikely ? log1p(-exp(x)) : log(-expm1(x));
  }

  Variable odds(Variable x) { return exp(x) / -expm1(x); }

  /// log(1 + exp(x))
  Variable softplus(Variable x) {
    const Variable far = x.value() > V(0) ? x : number(V(0));
    const Variable near = x.value() > V(0) ? -x : x;
    return far + log1p(exp(near));
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  OrpoFault fault_;
  Tape<Format> tape_;
};

Implementation implementation(std::string name, OrpoFault fault = OrpoFault::none,
                              const Trainer& trainer = {}) {
  const bool by_exp = fault == OrpoFault::log_of_one_less_exp;
  return eager_implementation({.loss = "orpo",
                               .source = {"impl/faulty/orpo.cpp", 1},
                               .form = by_exp ? "log1p(-exp(x))" : "log(-expm1(x))"},
                              std::move(name), step_of<EagerOrpo>(fault), trainer);
}

Implementation faulty(std::string name, OrpoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults where an answer is nearly certain.
void add_certain_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("log_of_one_less_exp", OrpoFault::log_of_one_less_exp,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/2564",
                        .cause = "non-finite slope behind a bound",
                        .trigger = "a log-prob within a roundoff of 0",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("hidden_branch", OrpoFault::hidden_branch,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/4763",
                        .cause = "non-finite slope behind a bound",
                        .trigger = "a log-prob within a roundoff of 0",
                        .killers = {"finite_backward"}}));
  all.push_back(faulty("offset", OrpoFault::offset,
                       {.twin = "eager",
                        .thread = "https://github.com/hpcaitech/ColossalAI/pull/6407",
                        .cause = "disagrees with the formula",
                        .trigger = "any pair; most where an answer is nearly certain",
                        .killers = {"reference_agreement"}}));
}

/// Faults where answers are far apart, and of every pair.
void add_term_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("odds_as_quotient", OrpoFault::odds_as_quotient,
                       {.twin = "eager",
                        .thread = "https://arxiv.org/abs/2403.07691",
                        .cause = "logarithm of an underflow",
                        .trigger = "a log-prob below -104 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("log_of_sigmoid", OrpoFault::log_of_sigmoid,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/2274",
                        .cause = "logarithm of an underflow",
                        .trigger = "log-odds 104 apart (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("detached", OrpoFault::detached,
                       {.twin = "eager",
                        .thread = "https://github.com/Goekdeniz-Guelmez/mlx-lm-lora/issues/65",
                        .cause = "dead signal",
                        .trigger = "any pair with a gradient",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("mean_of_micro_batch_means", OrpoFault::local_means,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/transformers/pull/34191",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal sizes",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> orpo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  add_certain_faults(all);
  add_term_faults(all);
  return all;
}

}  // namespace lossgate::impl
