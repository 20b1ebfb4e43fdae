// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/kto.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/position_program.h"

namespace lossgate::impl {
namespace {

/// The one place in which a variant deviates from the sound program.
enum class KtoFault {
  none,
  complement,  ///< none: the other form
  weights_dropped,
  weights_exchanged,
  kl_dropped,
  reference_dropped,
  missing_kind_is_nan,
  nan_skipped,
  local_means,
};

template <class Format>
class EagerKto {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;

  EagerKto(MicroBatch& batch, KtoFault fault) : batch_(batch), in_(batch), fault_(fault) {}

  LossResult run() {
    std::vector<Variable> leaves, terms, weighted;
    const PositionRules rules{.leaf = "log_prob", .local_means = fault_ == KtoFault::local_means};
    for (std::int64_t s = 0; s < batch_.part.shape[Axis::sequences]; ++s) {
      leaves.push_back(tape_.variable(in_.field("log_prob", s)));
      terms.push_back(term_of(leaves.back(), s));
      weighted.push_back(counted(terms.back()) * number(weight_of_row<V>(batch_, rules, s)));
    }
    // What stood for the losses of the answers that there are none of.
    if (fault_ == KtoFault::missing_kind_is_nan && lacks_a_kind()) {
      weighted.push_back(number(std::numeric_limits<V>::quiet_NaN()));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return result_by_sequence<Format>(tape_, loss, "per_sequence", terms, {{"log_prob", leaves}});
  }

 private:
  Variable number(V x) { return tape_.constant(x); }

  bool is_desirable(std::int64_t s) const { return in_.field("desirable", s) != V(0); }

  bool lacks_a_kind() const {
    const std::int64_t sequences = batch_.part.shape[Axis::sequences];
    std::int64_t desirable = 0;
    for (std::int64_t s = 0; s < sequences; ++s) desirable += is_desirable(s);
    return sequences > 0 && (desirable == 0 || desirable == sequences);
  }

  /// As nanmean has it: what is no number is left out.
  Variable counted(Variable term) {
    const bool skipped = fault_ == KtoFault::nan_skipped && term.value() != term.value();
    return skipped ? where(false, term, number(V(0))) : term;
  }

  Variable term_of(Variable log_prob, std::int64_t s) {
    const bool desirable = is_desirable(s);
    const Variable log_ratio = fault_ == KtoFault::reference_dropped
                                   ? log_prob
                                   : log_prob - number(in_.field("ref_log_prob", s));
    const V kl = fault_ == KtoFault::kl_dropped ? V(0) : in_.option("kl");
    const Variable gain = (log_ratio - number(kl)) * number(in_.option("beta"));
    const Variable h = desirable ? gain : -gain;
    const Variable lost = fault_ == KtoFault::complement ? number(V(1)) - sigmoid(h) : sigmoid(-h);
    if (fault_ == KtoFault::weights_dropped) return lost;
    const bool as_desirable = desirable != (fault_ == KtoFault::weights_exchanged);
    return lost * number(in_.option(as_desirable ? "desirable_weight" : "undesirable_weight"));
  }

  MicroBatch& batch_;
  PositionBatch<Format> in_;
  KtoFault fault_;
  Tape<Format> tape_;
};

Implementation implementation(std::string name, KtoFault fault = KtoFault::none,
                              const Trainer& trainer = {}) {
  const bool complement = fault == KtoFault::complement;
  return eager_implementation({.loss = "kto",
                               .source = {"impl/faulty/kto.cpp", 1},
                               .form = complement ? "1 - sigmoid(h)" : "sigmoid(-h)"},
                              std::move(name), step_of<EagerKto>(fault), trainer);
}

Implementation faulty(std::string name, KtoFault fault, Fault why, const Trainer& trainer = {}) {
  return with_fault(implementation(std::move(name), fault, trainer), std::move(why));
}

/// Faults in the term of an answer.
void add_term_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("weights_dropped", KtoFault::weights_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/7062",
                        .cause = "option misread",
                        .trigger = "a weight that is not 1",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("weights_exchanged", KtoFault::weights_exchanged,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/7062",
                        .cause = "option misread",
                        .trigger = "weights that differ",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("kl_dropped", KtoFault::kl_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/1447",
                        .cause = "option misread",
                        .trigger = "a divergence that is not 0",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("reference_dropped", KtoFault::reference_dropped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/7059",
                        .cause = "disagrees with the formula",
                        .trigger = "any reference",
                        .killers = {"reference_agreement"}}));
}

/// Faults in how answers are put together.
void add_reduction_faults(std::vector<Implementation>& all) {
  all.push_back(faulty("missing_kind_is_nan", KtoFault::missing_kind_is_nan,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/issues/1447",
                        .cause = "empty divisor",
                        .trigger = "a micro-batch without a desirable answer, or without another",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("nan_skipped", KtoFault::nan_skipped,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/trl/pull/1472",
                        .cause = "value repaired, gradient not",
                        .trigger = "NaN at a valid position",
                        .killers = {"no_laundering"}}));
  all.push_back(faulty("mean_of_micro_batch_means", KtoFault::local_means,
                       {.twin = "eager",
                        .thread = "https://github.com/huggingface/transformers/pull/34191",
                        .cause = "mean of means",
                        .trigger = "micro-batches of unequal sizes",
                        .killers = {"split_invariance"}},
                       {.all_reduce = Trainer::AllReduce::mean, .mean_over_micro_batches = true}));
}

}  // namespace

std::vector<Implementation> kto_implementations() {
  std::vector<Implementation> all;
  all.push_back(implementation("eager"));
  all.push_back(implementation("eager_by_complement", KtoFault::complement));
  add_term_faults(all);
  add_reduction_faults(all);
  return all;
}

}  // namespace lossgate::impl
