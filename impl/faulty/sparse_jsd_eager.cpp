// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/sparse_jsd_eager.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "impl/faulty/distributions.h"
#include "impl/token_weight.h"

namespace lossgate::impl {
namespace {

template <class Format>
class EagerSparseJsd {
 public:
  using V = typename Format::Value;
  using Variable = Var<Format>;
  using Row = VarRow<Format>;

  EagerSparseJsd(MicroBatch& micro_batch, SparseJsdFault fault)
      : batch_(micro_batch),
        spec_(micro_batch.part.spec),
        fault_(fault),
        rows_(micro_batch.part.shape[Axis::sequences]),
        tokens_(micro_batch.part.shape[Axis::tokens]),
        vocab_(micro_batch.part.shape[Axis::vocab]),
        support_(micro_batch.part.shape[Axis::support]),
        tail_(spec_.number("tail") != 0.0),
        temperature_(static_cast<V>(spec_.number("temperature"))),
        divergence_(spec_.number("beta"), divergence_fault(fault)) {}

  LossResult run() {
    std::vector<Variable> weighted;
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      terms_.push_back(term_of(at));
      weighted.push_back(terms_.back() * tape_.constant(weight_of(at)));
    }
    const Variable loss = tape_.sum(weighted);
    tape_.backward(loss, static_cast<V>(batch_.part.upstream));
    return collect(loss);
  }

 private:
  static constexpr V kInfinity = std::numeric_limits<V>::infinity();

  static DivergenceFault divergence_fault(SparseJsdFault fault) {
    if (fault == SparseJsdFault::sentinel_unmasked) return DivergenceFault::entries_repaired;
    if (fault == SparseJsdFault::mask_multiplied_after_divergence) {
      return DivergenceFault::zero_times_log;
    }
    return DivergenceFault::none;
  }

  bool is(SparseJsdFault fault) const { return fault_ == fault; }
  const Tensor& field(std::string_view name) const { return batch_.part.batch.at(name); }

  /// What the variant takes for a position that counts.
  bool valid(std::int64_t at) const {
    if (!is(SparseJsdFault::sentinel_compared_in_bf16)) {
      return batch_.positions.valid[static_cast<std::size_t>(at)] != 0;
    }
    const double first = field("teacher_log_prob").at(at * support_);
    return round_to(Dtype::bf16, first) != -std::numeric_limits<double>::infinity();
  }

  bool reads_masked() const {
    return is(SparseJsdFault::sentinel_unmasked) ||
           is(SparseJsdFault::mask_multiplied_after_divergence);
  }

  Variable term_of(std::int64_t at) {
    const bool cleared = !valid(at) && is(SparseJsdFault::padding_replaced_by_zero_and_counted);
    leaves_.emplace_back();
    if (!valid(at) && !reads_masked() && !cleared) return tape_.constant(0);
    const Row l = log_softmax(student_logits(at, cleared));
    Row p, q;
    for (std::int64_t slot : live_slots(at)) {
      p.push_back(l[static_cast<std::size_t>(token(at, slot))]);
      const double answer = field("teacher_log_prob").at(at * support_ + slot);
      q.push_back(tape_.constant(cleared ? V(0) : static_cast<V>(answer)));
    }
    Row student = entries(p, false);
    if (tail_ && is(SparseJsdFault::unlisted)) {
      const Row rest = unlisted(at, l);
      if (!rest.empty()) student.back() = sum_of_tail(rest);
    }
    const Row teacher = entries(q, is(SparseJsdFault::tail_floored_after_logarithm));
    return kept(at, divergence_(student, teacher));
  }

  /// What is left of a position's term.
  Variable kept(std::int64_t at, Variable term) {
    if (is(SparseJsdFault::nan_to_num_at_valid)) return nan_to_num(term);
    if (is(SparseJsdFault::sentinel_unmasked)) return where(valid(at), term, tape_.constant(0));
    if (!is(SparseJsdFault::mask_multiplied_after_divergence)) return term;
    return term * tape_.constant(valid(at));
  }

  Row student_logits(std::int64_t at, bool cleared) {
    Row logits;
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const double x = cleared ? 0.0 : field("student_logits").at(at * vocab_ + v);
      const Variable leaf = tape_.variable(static_cast<V>(x));
      leaves_.back().push_back(leaf);
      const bool plain = temperature_ == V(1);
      logits.push_back(plain ? leaf : leaf / tape_.constant(temperature_));
    }
    return logits;
  }

  /// Padding may hold any number; valid positions have been checked.
  std::int64_t token(std::int64_t at, std::int64_t slot) const {
    return std::clamp<std::int64_t>(field("support_token").integer_at(at * support_ + slot), 0,
                                    vocab_ - 1);
  }

  /// Slots whose token no earlier one has.
  std::vector<std::int64_t> live_slots(std::int64_t at) const {
    std::vector<std::int64_t> slots;
    for (std::int64_t slot = 0; slot < support_; ++slot) {
      const bool known = std::ranges::any_of(
          slots, [&](std::int64_t earlier) { return token(at, earlier) == token(at, slot); });
      if (!known) slots.push_back(slot);
    }
    return slots;
  }

  /// The log-probs of the tokens that no slot has.
  Row unlisted(std::int64_t at, const Row& log_probs) const {
    Row rest;
    const std::vector<std::int64_t> slots = live_slots(at);
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const auto has = [&](std::int64_t slot) { return token(at, slot) == v; };
      if (!std::ranges::any_of(slots, has)) {
        rest.push_back(log_probs[static_cast<std::size_t>(v)]);
      }
    }
    return rest;
  }

  /// Their mass, no less than the floor.
  Variable sum_of_tail(const Row& rest) const {
    const auto floor = static_cast<V>(-spec_.number("tail_floor"));
    return clamp(log_sum_exp(rest), std::log(-std::expm1(floor)), kInfinity);
  }

  /// The support and the rest of the vocabulary, or the support alone as a whole.
  Row entries(const Row& log_probs, bool floored_late) {
    const Variable mass = log_sum_exp(log_probs);
    if (tail_) {
      Row result = log_probs;
      const auto floor = static_cast<V>(-spec_.number("tail_floor"));
      result.push_back(floored_late
                           ? clamp(log(-expm1(mass)), std::log(-std::expm1(floor)), kInfinity)
                           : log(-expm1(clamp(mass, -kInfinity, floor))));
      return result;
    }
    Row result;
    const Row masses = tape_.expand(mass, log_probs.size());
    for (std::size_t k = 0; k < log_probs.size(); ++k) {
      result.push_back(log_probs[k] - masses[k]);
    }
    return result;
  }

  V weight_of(std::int64_t at) const {
    const std::int64_t row = at / tokens_;
    Totals totals = batch_.totals;
    std::int64_t own = batch_.positions.row_tokens[static_cast<std::size_t>(row)];
    if (is(SparseJsdFault::padding_replaced_by_zero_and_counted)) {
      totals.tokens = rows_ * tokens_;
      own = tokens_;
    }
    if (is(SparseJsdFault::sentinel_compared_in_bf16)) {
      own = valid(at);
      totals.tokens = 0;
      for (std::int64_t i = 0; i < rows_ * tokens_; ++i) totals.tokens += valid(i);
    }
    return token_weight<V>(spec_, totals, own);
  }

  LossResult collect(Variable loss) {
    const Dtype wide = sizeof(V) == 8 ? Dtype::f64 : Dtype::f32;
    Tensor total = Tensor::zeros(wide, {}), per_token = Tensor::zeros(wide, {rows_, tokens_}),
           gradient = Tensor::zeros(wide, field("student_logits").extents);
    total.set(0, static_cast<double>(loss.value()));
    for (std::int64_t at = 0; at < rows_ * tokens_; ++at) {
      const auto i = static_cast<std::size_t>(at);
      per_token.set(at, static_cast<double>(terms_[i].value()));
      for (std::size_t v = 0; v < leaves_[i].size(); ++v) {
        gradient.set(at * vocab_ + static_cast<std::int64_t>(v),
                     static_cast<double>(tape_.gradient(leaves_[i][v])));
      }
    }
    LossResult result;
    result.outputs.push_back({"loss", std::move(total)});
    result.outputs.push_back({"per_token", std::move(per_token)});
    result.outputs.push_back({"gradient.student_logits", std::move(gradient)});
    return result;
  }

  MicroBatch& batch_;
  const LossSpec& spec_;
  SparseJsdFault fault_;
  std::int64_t rows_, tokens_, vocab_, support_;
  bool tail_;
  V temperature_;
  JensenShannon<Format> divergence_;
  Tape<Format> tape_;
  std::vector<Row> leaves_;  ///< of each position; empty where it was not read
  std::vector<Variable> terms_;
};

}  // namespace

LossResult eager_sparse_jsd(MicroBatch& micro_batch, SparseJsdFault fault) {
  return float_dtype(micro_batch.signature, micro_batch.part) == Dtype::f64
             ? EagerSparseJsd<F64>(micro_batch, fault).run()
             : EagerSparseJsd<F32>(micro_batch, fault).run();
}

}  // namespace lossgate::impl
