// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/dpo.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class DpoFault {
  none,
  by_answer,  ///< none: the other form, and the margin taken off before beta
  log_of_sigmoid,
  log_of_one_plus_exp,
  label_smoothing_dropped,
  margin_times_beta,
  always_sigmoid,
  rejected_detached,
  local_means,
};

template <class Format>
class EagerDpo {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerDpo(MicroBatch& batch, DpoFault fault) : batch_(batch), in_(batch), fault_(fault) {}

  LossResult run() {
    std::vector<Variable> chosen, rejected, terms, weighted;
    const PositionRules rules{.leaf = "chosen_log_prob",
                              .local_means = fault_ == DpoFault::local_means};
    for (std::int64_t s = 0; s < batch_.part.shape[Axis::sequences]; ++s) {
      chosen.push_back(tape_.variable(in_.field("chosen_log_prob", s)));
      rejected.push_back(tape_.variable(in_.field("rejected_log_prob", s)));
      terms.push_back(term_of(chosen.back(), rejected.back(), s));
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

  Variable term_of(Variable chosen, Variable rejected, std::int64_t s) {
    const std::string& kind = batch_.part.spec.choice("loss_type");
    const Variable d = difference(chosen, rejected, s);
    if (kind == "sigmoid" || fault_ == DpoFault::always_sigmoid) return sigmoidal(d);
    const V beta = in_.option("beta");
    if (kind == "hinge") {
      const Variable gap = number(V(1)) - d * number(beta);
      return gap.value() > V(0) || gap.value() != gap.value() ? gap : number(V(0));
    }
    const Variable off = d - number(V(1) / (V(2) * beta));
    return off * off;
  }

  Variable difference(Variable chosen, Variable rejected, std::int64_t s) {
    const Variable ref_chosen = number(in_.field("ref_chosen_log_prob", s)),
                   ref_rejected = number(in_.field("ref_rejected_log_prob", s));
    if (fault_ == DpoFault::rejected_detached) rejected = detach(rejected);
    if (fault_ == DpoFault::by_answer) {
      return (chosen - ref_chosen) - (rejected - ref_rejected);
    }
    return (chosen - rejected) - (ref_chosen - ref_rejected);
  }

  Variable sigmoidal(Variable d) {
    const Variable h = less_margin(d);
    const V turned =
        fault_ == DpoFault::label_smoothing_dropped ? V(0) : in_.option("label_smoothing");
    const Variable kept = cost(h) * number(V(1) - turned);
    return turned == V(0) ? kept : kept + cost(-h) * number(turned);
  }

  /// beta D - margin
  Variable less_margin(Variable d) {
    const V beta = in_.option("beta"), margin = in_.option("margin");
    if (fault_ == DpoFault::margin_times_beta) return (d - number(margin)) * number(beta);
    if (fault_ == DpoFault::by_answer) return (d - number(margin / beta)) * number(beta);
    return d * number(beta) - number(margin);
  }

  /// -log sigmoid(x)
  Variable cost(Variable x) {
    if (fault_ == DpoFault::log_of_sigmoid) return -log(sigmoid(x));
    if (fault_ == DpoFault::log_of_one_plus_exp) return log(number(V(1)) + exp(-x));
    const Variable far = x.value() > V(0) ? number(V(0)) : -x;
    const Variable near = x.value() > V(0) ? -x : x;
    return far + log1p(exp(near));
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  DpoFault fault_;
  Tape<Format> tape_;
};

constexpr const char* kByPolicy =
    "(c - r) - (ref_c - ref_r) with e sigmoid(h) - (1 - e) sigmoid(-h)";
constexpr const char* kByAnswer =
    "(c - ref_c) - (r - ref_r) with e sigmoid(h) - (1 - e) sigmoid(-h)";

constexpr const char* kTogether = "(c - r) - (ref_c - ref_r) with sigmoid(h) - (1 - e)";

Implementation implementation(std::string name, DpoFault fault = DpoFault::none,
                              const Trainer& trainer = {}) {
  const bool by_answer = fault == DpoFault::by_answer;
  const bool together = fault == DpoFault::log_of_sigmoid;
  return eager_implementation({.loss = "dpo",
                               .source = {"impl/faulty/dpo.cpp", 1},
                               .form = by_answer  ? kByAnswer
                                       : together ? kTogether
                                                  : kByPolicy},
                              std::move(name), step_of<EagerDpo>(fault), trainer);
}

Implementation faulty(std::string name, DpoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults in the term of a pair.
void add_term_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("log_of_sigmoid", DpoFault::log_of_sigmoid,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/878",
                        .cause = "logarithm of an underflow",
                        .trigger = "beta D below -88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("log_of_one_plus_exp", DpoFault::log_of_one_plus_exp,
                       {.twin = "eager",
                        .thread = "https://github.com/OpenRLHF/OpenRLHF/blob/main/openrlhf/models/"
                                  "loss.py",
                        .cause = "logarithm of an underflow",
                        .trigger = "beta D below -88.7 (f32)",
                        .killers = {"finite_forward", "finite_backward"}}));
  all.push_back(faulty("label_smoothing_dropped", DpoFault::label_smoothing_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/7062",
                        .cause = "option misread",
                        .trigger = "label smoothing",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("margin_times_beta", DpoFault::margin_times_beta,
                       {.twin = "eager",
                        .thread = "https://github.com/locuslab/open-unlearning/issues/123",
                        .cause = "option misread",
                        .trigger = "a margin, where beta is not 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("always_sigmoid", DpoFault::always_sigmoid,
                       {.twin = "eager",
                        .thread = "https://github.com/modelscope/ms-swift/pull/10167",
                        .cause = "option misread",
                        .trigger = "a hinge, or IPO",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("rejected_detached", DpoFault::rejected_detached,
                       {.twin = "eager",
                        .thread = "https://github.com/Goekdeniz-Guelmez/mlx-lm-lora/issues/65",
                        .cause = "dead signal",
                        .trigger = "any pair with a gradient",
                        .killers = {"reference_agreement"}}));
}

/// Faults in what a pair counts.
void add_reduction_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("mean_of_micro_batch_means", DpoFault::local_means,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/transformers/pull/34191",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal sizes",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
  all.push_back(faulty("means_added_up", DpoFault::local_means,
                       {.twin = "eager",
                        .thread = "https://github.com/meta-pytorch/torchtune/pull/2275",
                        .cause = "mean of means",
                        .trigger = "several ranks: the first loss is 1.4 on two, 2.7 on four",
                        .killers = {"split_invariance"}}));
}

}  // namespace

std::vector<Implementation> dpo_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(implementation("eager_by_answer", DpoFault::by_answer));
  add_term_faults(all);
  add_reduction_faults(all);
  return all;
}

}  // namespace lossgate::impl
