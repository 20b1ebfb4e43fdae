// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/softmax_block.h"

namespace lossgate::impl {

/// The divergence from a teacher that is known on a few tokens, with a bucket for the others.
/// `gradient` may be the memory of `student`.
template <class Stored>
struct SparseJsdArrays {
  TokenArrays batch;
  DivergenceOptions<float> options;
  std::int64_t vocab = 0, support = 0;
  float temperature = 1.0f, tail_floor = 0.0f;
  bool tail = true;
  Strided<const Stored> student;
  Strided<const float> teacher_log_prob;
  Strided<const std::int64_t> support_token;
  Strided<Stored> gradient;
};

/// Shared memory of one block, beside a reduction's.
constexpr std::size_t sparse_jsd_bytes(std::int64_t support) {
  return (static_cast<std::size_t>(support) * sizeof(float) + 15) / 16 * 16 * 3;
}

/// log(1 - exp(a)) for a < 0. Each form is exact where the other cancels (M. Maechler, "Accurately
/// computing log(1 - exp(-|a|))", 2012).
LOSSGATE_HOST_DEVICE inline float log_one_minus_exp(float a) {
  using std::exp;
  using std::expm1;
  using std::log;
  using std::log1p;
  return a < -0.6875f ? log1p(-exp(a)) : log(-expm1(a));
}

/// One position. Slots of the support are looked after by one thread each; a slot that repeats an
/// earlier one's token is off: its entry is -infinity on both sides.
template <class Block, class Stored>
class SparseJsdRow {
 public:
  LOSSGATE_BLOCK_PROGRAM SparseJsdRow(Block& block, const SparseJsdArrays<Stored>& arrays,
                                      std::int64_t position)
      : block_(block),
        arrays_(arrays),
        sequence_(position / arrays.batch.tokens),
        token_(position % arrays.batch.tokens),
        row_(at(block, arrays.student, sequence_, token_)),
        gradient_(at(block, arrays.gradient, sequence_, token_)),
        tokens_(at(block, arrays.support_token, sequence_, token_)),
        reduction_(block),
        student_(block.template shared<float>(static_cast<int>(arrays.support))),
        teacher_(block.template shared<float>(static_cast<int>(arrays.support))),
        slopes_(block.template shared<float>(static_cast<int>(arrays.support))) {}

  LOSSGATE_BLOCK_PROGRAM void run() {
    const TokenArrays& batch = arrays_.batch;
    if (!is_valid(block_, batch.validity, sequence_, token_)) {
      write_term(block_, batch, sequence_, token_, 0.0f, 0.0f);
      return clear_row(block_, gradient_, arrays_.vocab);
    }
    softmax_ = softmax_of(block_, reduction_, row_, arrays_.vocab, arrays_.temperature);
    read_slots();
    const float weight = weight_of(batch.weighing, batch.row_tokens[sequence_]);
    const float value = compare(upstream_of(batch) * weight);
    write_term(block_, batch, sequence_, token_, value, weight * value);
    write_row();
  }

 private:
  /// The logarithm of a side's mass on the support, and what stands for the rest.
  struct Side {
    float mass, tail, tail_slope;
  };

  /// An answer that is missing has a meaning where no mixture or student is held against it: for
  /// beta = 0 it is the limit. Elsewhere the caller has to look at it, so it gives no number.
  LOSSGATE_BLOCK_PROGRAM float answer_of(float log_prob) const {
    const bool missing = log_prob == kMinusInfinity && arrays_.options.beta > 0.0f;
    return missing ? log_prob - log_prob : log_prob;
  }

  LOSSGATE_BLOCK_PROGRAM void read_slots() {
    const float* const answers = at(block_, arrays_.teacher_log_prob, sequence_, token_);
    for_each_element(block_, arrays_.support, [&](int t, int, std::int64_t k) {
      const int slot = static_cast<int>(k);
      const bool on = is_on(k);
      student_.set(
          t, slot,
          on ? log_prob_of(softmax_, logit_of(row_, arrays_.vocab, tokens_[k])) : kMinusInfinity);
      teacher_.set(t, slot, on ? answer_of(answers[k]) : kMinusInfinity);
    });
  }

  LOSSGATE_BLOCK_PROGRAM bool is_on(std::int64_t k) const {
    for (std::int64_t earlier = 0; earlier < k; ++earlier) {
      if (tokens_[earlier] == tokens_[k]) return false;
    }
    return true;
  }

  template <class Term>
  LOSSGATE_BLOCK_PROGRAM float sum_over(std::int64_t n, Term&& term) {
    auto sums = block_.template per_thread<Lanes>();
    block_.each([&](int t) { sums[t] = Lanes{}; });
    for_each_element(block_, n, [&](int t, int lane, std::int64_t i) {
      add_to(sums[t], lane, term(t, static_cast<int>(i)));
    });
    return reduction_.sum(sums);
  }

  template <class Array>
  LOSSGATE_BLOCK_PROGRAM Side side_of(Array& log_probs) {
    using std::exp;
    using std::expm1;
    using std::log;
    auto values = block_.template per_thread<float>();
    block_.each([&](int t) { values[t] = kMinusInfinity; });
    for_each_element(block_, arrays_.support, [&](int t, int, std::int64_t k) {
      const float x = log_probs.get(t, static_cast<int>(k));
      if (values[t] < x) values[t] = x;
    });
    const float largest = reduction_.maximum(values);
    const float shift = largest == kMinusInfinity ? 0.0f : largest;
    const float sum = sum_over(
        arrays_.support, [&](int t, int slot) { return exp(log_probs.get(t, slot) - shift); });
    Side side{shift + log(sum), 0.0f, 0.0f};
    if (arrays_.tail) {
      const bool floored = side.mass > -arrays_.tail_floor;
      const float bounded = floored ? -arrays_.tail_floor : side.mass;
      side.tail = log_one_minus_exp(bounded);
      side.tail_slope = floored ? 0.0f : exp(bounded) / expm1(bounded);
    }
    return side;
  }

  /// Of the support's entry; without a tail the support is the whole.
  LOSSGATE_BLOCK_PROGRAM float entry_of(float log_prob, const Side& side) const {
    return arrays_.tail || log_prob == kMinusInfinity ? log_prob : log_prob - side.mass;
  }

  /// Of one slot, or of the tail, which comes after them.
  LOSSGATE_BLOCK_PROGRAM DivergenceEntry<float> entry_at(int t, int slot, const Side& student,
                                                         const Side& teacher) {
    return slot < arrays_.support
               ? divergence_entry(entry_of(student_.get(t, slot), student),
                                  entry_of(teacher_.get(t, slot), teacher), arrays_.options)
               : divergence_entry(student.tail, teacher.tail, arrays_.options);
  }

  /// The divergence; leaves the gradient by log-prob of every slot.
  LOSSGATE_BLOCK_PROGRAM float compare(float scale) {
    using std::exp;
    const Side student = side_of(student_), teacher = side_of(teacher_);
    const std::int64_t n = arrays_.support + arrays_.tail;
    const DivergenceOptions<float>& options = arrays_.options;
    const float from_teacher = sum_over(
        n, [&](int t, int slot) { return entry_at(t, slot, student, teacher).from_teacher; });
    const float from_student = sum_over(
        n, [&](int t, int slot) { return entry_at(t, slot, student, teacher).from_student; });
    const auto slope_at = [&](int t, int slot) {
      const float p = entry_of(student_.get(t, slot), student),
                  q = entry_of(teacher_.get(t, slot), teacher);
      return scale * divergence_slope(p, q, divergence_entry(p, q, options), options);
    };
    // What comes back to a slot through the mass of the support.
    const float through =
        arrays_.tail
            ? scaled(scale * divergence_slope(student.tail, teacher.tail,
                                              divergence_entry(student.tail, teacher.tail, options),
                                              options),
                     student.tail_slope)
            : -sum_over(arrays_.support, slope_at);
    for_each_element(block_, arrays_.support, [&](int t, int, std::int64_t k) {
      const int slot = static_cast<int>(k);
      const float log_prob = student_.get(t, slot);
      const float share = log_prob == kMinusInfinity ? 0.0f : exp(log_prob - student.mass);
      slopes_.set(t, slot, slope_at(t, slot) + scaled(share, through));
    });
    return divergence_of(from_teacher, from_student, options);
  }

  /// First as if no token were listed, then the tokens that are.
  LOSSGATE_BLOCK_PROGRAM void write_row() {
    using std::exp;
    if (!gradient_) return;
    const float total = sum_over(arrays_.support, [&](int t, int slot) {
      return is_on(slot) ? slopes_.get(t, slot) : 0.0f;
    });
    write_gradient(block_, row_, arrays_.vocab, gradient_, [&](std::int64_t, float logit) {
      return cooled(-(exp(log_prob_of(softmax_, logit)) * total), arrays_.temperature);
    });
    block_.barrier();  // the same places are written again, by other threads
    for_each_element(block_, arrays_.support, [&](int t, int, std::int64_t k) {
      if (!is_on(k) || tokens_[k] < 0 || tokens_[k] >= arrays_.vocab) return;
      const int slot = static_cast<int>(k);
      const float slope = slopes_.get(t, slot) - exp(student_.get(t, slot)) * total;
      store(cooled(slope, arrays_.temperature), gradient_ + tokens_[k]);
    });
  }

  Block& block_;
  const SparseJsdArrays<Stored>& arrays_;
  std::int64_t sequence_, token_;
  const Stored* row_;
  Stored* gradient_;
  const std::int64_t* tokens_;
  BlockReduction<Block> reduction_;
  typename Block::template Shared<float> student_, teacher_, slopes_;
  Softmax softmax_{};
};

}  // namespace lossgate::impl
