// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/log_prob_eager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "impl/faulty/faulty_softmax.h"

namespace lossgate::impl {
namespace {

template <class Format>
class EagerLogProb {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerLogProb(MicroBatch& micro_batch, LogProbFault fault)
      : batch_(micro_batch),
        fault_(fault),
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        vocab_(micro_batch.part.shape[Axis::vocab]),
        temperature_(static_cast<V>(micro_batch.part.spec.number("temperature"))) {}

  LossResult run() {
    const Tensor &log_prob_weight = field("log_prob_weight"),
                 &entropy_weight = field("entropy_weight");
    std::vector<Variable> terms;
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      answers_.push_back(answer(at));
      if (answers_.back().leaves.empty()) continue;
      terms.push_back(share(log_prob_weight, at, answers_.back().log_prob) +
                      share(entropy_weight, at, answers_.back().entropy));
    }
    const Variable loss = tape_.sum(terms);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return collect(loss);
  }

 private:
  struct Answer {
    Row leaves;  ///< empty where masked
    Variable log_prob, entropy;
  };

  bool is(LogProbFault fault) const { return fault_ == fault; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }
  Variable number(double x) { return tape_.constant(static_cast<V>(x)); }

  Answer answer(std::int64_t at) {
    const bool valid = batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
    if (!valid && !is(LogProbFault::ignored_label_reads_logit)) return {{}, number(0), number(0)};
    Row leaves, logits;
    for (std::int64_t v = 0; v < vocab_; ++v) {
      leaves.push_back(tape_.variable(static_cast<V>(field("logits").at(at * vocab_ + v))));
      const bool plain = temperature_ == V(1);
      logits.push_back(plain ? leaves.back() : leaves.back() / number(temperature_));
      if (is(LogProbFault::temperature_twice)) logits.back() = logits.back() / number(temperature_);
    }
    const Row l = log_probs(logits, at);
    const std::int64_t label = field("label").integer_at(at);
    const auto taken = static_cast<std::size_t>(std::clamp<std::int64_t>(label, 0, vocab_ - 1));
    const Variable h = entropy(l);
    if (valid) return {leaves, l[taken], h};
    return {leaves, l[taken] * number(0), h * number(0)};
  }

  Row log_probs(const Row& logits, std::int64_t at) {
    if (is(LogProbFault::odd_vocab_of_one_tier) && at > 0) return log_softmax_of_pairs(logits);
    if (is(LogProbFault::logsumexp_without_max)) return log_softmax_without_max(logits);
    if (is(LogProbFault::online_max_first_tile)) return online_log_softmax(logits, 2);
    if (is(LogProbFault::online_max_first_block)) return online_log_softmax(logits, 16384);
    if (is(LogProbFault::one_block_of_vocab)) return log_softmax_of_one_block(logits);
    return log_softmax(logits);
  }

  /// An impossible token, or one whose probability underflows, adds nothing.
  Variable entropy(const Row& log_prob) {
    Row terms;
    for (const Variable& l : log_prob) {
      const Variable p = exp(l);
      const bool selects = !is(LogProbFault::entropy_p_log_p) && p.value() == 0;
      terms.push_back(selects ? number(0) : p * l);
    }
    return -tape_.sum(terms);
  }

  /// A weight of 0 asks for nothing, not even of an impossible token.
  Variable share(const Tensor& weight, std::int64_t at, Variable x) {
    const double w = weight.at(at);
    return w == 0.0 ? number(0) : number(w) * x;
  }

  LossResult collect(Variable loss) {
    const Dtype wide = sizeof(V) == 8 ? Dtype::f64 : Dtype::f32;
    const Extents positions = {rows_, tokens_};
    Tensor total = Tensor::zeros(wide, {}), log_prob = Tensor::zeros(wide, positions),
           entropy = Tensor::zeros(wide, positions),
           gradient = Tensor::zeros(wide, field("logits").extents);
    total.set(0, static_cast<double>(loss.value()));
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      const Answer& answer = answers_[static_cast<std::size_t>(at)];
      log_prob.set(at, static_cast<double>(answer.log_prob.value()));
      entropy.set(at, static_cast<double>(answer.entropy.value()));
      for (std::size_t v = 0; v < answer.leaves.size(); ++v) {
        gradient.set(at * vocab_ + static_cast<std::int64_t>(v),
                     static_cast<double>(tape_.gradient(answer.leaves[v])));
      }
    }
    LossResult result;
    result.outputs.push_back({"loss", std::move(total)});
    result.outputs.push_back({"log_prob", std::move(log_prob)});
    result.outputs.push_back({"entropy", std::move(entropy)});
    result.outputs.push_back({"gradient.logits", std::move(gradient)});
    return result;
  }

  MicroBatch& batch_;
  LogProbFault fault_;
  std::int64_t rows_, tokens_, vocab_;
  V temperature_;
  Tape<Format> tape_;
  std::vector<Answer> answers_;
};

}  // namespace

LossResult eager_log_prob(MicroBatch& micro_batch, LogProbFault fault) {
  return float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64
             ? EagerLogProb<F64>(micro_batch, fault).run()
             : EagerLogProb<F32>(micro_batch, fault).run();
}

}  // namespace lossgate::impl
