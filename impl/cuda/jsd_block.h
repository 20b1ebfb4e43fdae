// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/cuda/softmax_block.h"

namespace lossgate::impl {

/// The generalised Jensen-Shannon divergence over the vocabulary, or over a chunk of the positions.
/// `gradient` may be the memory of `student`.
template <class Stored>
struct JsdArrays {
  TokenArrays batch;
  DivergenceOptions<float> options;
  std::int64_t vocab = 0;
  float temperature = 1.0f;
  Strided<const Stored> student, teacher;
  Strided<Stored> gradient;
};

/// One position. Both rows are read for their softmax and for the divergence; its gradient needs
/// the divergence, and so a third reading, unless beta is 0.
template <class Block, class Stored>
class JsdRow {
 public:
  LOSSGATE_BLOCK_PROGRAM JsdRow(Block& block, const JsdArrays<Stored>& arrays,
                                std::int64_t position)
      : block_(block),
        arrays_(arrays),
        sequence_(position / arrays.batch.tokens),
        token_(position % arrays.batch.tokens),
        student_(at(block, arrays.student, sequence_, token_)),
        teacher_(at(block, arrays.teacher, sequence_, token_)),
        gradient_(at(block, arrays.gradient, sequence_, token_)),
        reduction_(block) {}

  LOSSGATE_BLOCK_PROGRAM void run() {
    const TokenArrays& batch = arrays_.batch;
    if (!is_valid(block_, batch.validity, sequence_, token_)) {
      write_term(block_, batch, sequence_, token_, 0.0f, 0.0f);
      return clear_row(block_, gradient_, arrays_.vocab);
    }
    p_ = softmax_of(block_, reduction_, student_, arrays_.vocab, arrays_.temperature);
    q_ = softmax_of(block_, reduction_, teacher_, arrays_.vocab, arrays_.temperature);
    const float weight = weight_of(batch.weighing, batch.row_tokens[sequence_]);
    scale_ = upstream_of(batch) * weight;
    const DivergenceOptions<float>& options = arrays_.options;
    const float value = options.beta == 0.0f ? forward_kl() : two_sided();
    write_term(block_, batch, sequence_, token_, value, weight * value);
  }

 private:
  /// f(thread, lane, log p, log q) for every entry; gives back what is stored as its gradient,
  /// where kWrites.
  template <bool kWrites, class F>
  LOSSGATE_BLOCK_PROGRAM void for_each_entry(F&& f) {
    const bool aligned = is_aligned(teacher_), aligned_gradient = is_aligned(gradient_);
    for_each_pack(
        block_, student_, arrays_.vocab, [&](int t, std::int64_t first, int count, Pack pack) {
          const Pack other = load_pack(teacher_ + first, count, aligned);
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            if (j >= count) continue;
            const float slope = f(t, j, log_prob_of(p_, pack.at[j]), log_prob_of(q_, other.at[j]));
            if (kWrites) pack.at[j] = cooled(slope, arrays_.temperature);
          }
          if (kWrites && gradient_) store_pack(pack, gradient_ + first, count, aligned_gradient);
        });
  }

  LOSSGATE_BLOCK_PROGRAM float forward_kl() {
    using std::exp;
    auto sums = block_.template per_thread<Lanes>();
    block_.each([&](int t) { sums[t] = Lanes{}; });
    for_each_entry<true>([&](int t, int lane, float student, float teacher) {
      sums[t].at[lane] += divergence_entry(student, teacher, arrays_.options).from_teacher;
      return scale_ * (exp(student) - exp(teacher));
    });
    return reduction_.sum(sums);
  }

  LOSSGATE_BLOCK_PROGRAM float two_sided() {
    auto teacher_sums = block_.template per_thread<Lanes>(),
         student_sums = block_.template per_thread<Lanes>();
    block_.each([&](int t) { teacher_sums[t] = student_sums[t] = Lanes{}; });
    for_each_entry<false>([&](int t, int lane, float student, float teacher) {
      const auto entry = divergence_entry(student, teacher, arrays_.options);
      teacher_sums[t].at[lane] += entry.from_teacher;
      student_sums[t].at[lane] += entry.from_student;
      return 0.0f;
    });
    const float from_teacher = reduction_.sum(teacher_sums),
                from_student = reduction_.sum(student_sums);
    if (gradient_) write_two_sided_gradient(from_student);
    return divergence_of(from_teacher, from_student, arrays_.options);
  }

  LOSSGATE_BLOCK_PROGRAM void write_two_sided_gradient(float from_student) {
    using std::exp;
    const float rest = arrays_.options.rest == 0.0f ? 1.0f : arrays_.options.rest;
    for_each_entry<true>([&](int, int, float student, float teacher) {
      const auto entry = divergence_entry(student, teacher, arrays_.options);
      return scale_ * (rest * weighed(student, exp(student), entry.difference - from_student));
    });
  }

  Block& block_;
  const JsdArrays<Stored>& arrays_;
  std::int64_t sequence_, token_;
  const Stored *student_, *teacher_;
  Stored* gradient_;
  BlockReduction<Block> reduction_;
  Softmax p_{}, q_{};
  float scale_ = 0.0f;
};

}  // namespace lossgate::impl
