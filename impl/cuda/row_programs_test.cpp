// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <type_traits>

#include "impl/cuda/fake_blocks.h"
#include "impl/cuda/given_sparse_memory.h"
#include "impl/cuda/jsd_block.h"
#include "impl/cuda/log_prob_block.h"
#include "impl/cuda/logits_grpo_block.h"
#include "impl/cuda/loop_block.h"
#include "impl/cuda/sparse_jsd_block.h"

namespace lossgate::impl {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Positions of one sequence with `vocab` logits each, and beside every row one number that nobody
/// may touch.
template <class Stored>
struct Rows {
  Rows(std::int64_t tokens, std::int64_t vocab_in, unsigned seed) : vocab(vocab_in) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    memory.resize(static_cast<std::size_t>(tokens * (vocab + 1)));
    for (Stored& x : memory) {
      Bf16 drawn;  // the same numbers in every format
      store(normal(engine), &drawn);
      store(widened(drawn), &x);
    }
    for (std::int64_t t = 0; t < tokens; ++t) store(kNan, &at(t, vocab));
  }

  Stored& at(std::int64_t token, std::int64_t v) {
    return memory[static_cast<std::size_t>(token * (vocab + 1) + v)];
  }
  operator Strided<Stored>() { return {memory.data(), 0, vocab + 1}; }
  operator Strided<const Stored>() { return {memory.data(), 0, vocab + 1}; }

  std::int64_t vocab;
  std::vector<Stored> memory;
};

/// The arrays of a batch of one sequence, of which position 1 is masked.
template <class Stored>
struct Example {
  Example(std::int64_t vocab, std::int64_t tokens_in = 3)
      : tokens(tokens_in),
        logits(tokens, vocab, 1),
        teacher(tokens, vocab, 2),
        gradient(tokens, vocab, 3),
        labels(static_cast<std::size_t>(tokens), vocab - 1),
        weights(static_cast<std::size_t>(tokens), 0.75f),
        values(static_cast<std::size_t>(tokens), kNan),
        weighted(values),
        entropies(values) {
    labels[1] = kMaskedLabel;
    for (std::int64_t v = 0; v < vocab; ++v) store(kNan, &logits.at(1, v));
    row_tokens[0] = tokens - 1;
  }

  TokenArrays batch() {
    TokenArrays batch;
    batch.sequences = 1;
    batch.tokens = tokens;
    batch.validity.labels.wide = {labels.data(), 0, 1};
    batch.weighing.constant = 0.5f;
    batch.row_tokens = row_tokens;
    batch.per_token = {values.data(), 0, 1};
    batch.weighted = {weighted.data(), 0, 1};
    return batch;
  }

  LogProbArrays<Stored> log_prob() {
    const Strided<const float> weight = {weights.data(), 0, 1};
    return {batch(), logits.vocab, 2.0f,   {.narrow = {}, .wide = {labels.data(), 0, 1}},
            logits,  weight,       weight, {entropies.data(), 0, 1},
            gradient};
  }

  JsdArrays<Stored> jsd(float beta = 0.25f) {
    return {batch(), options(beta), logits.vocab, 1.0f, logits, teacher, gradient};
  }

  static DivergenceOptions<float> options(float beta) {
    return {beta, 1.0f - beta, std::log(beta), std::log1p(-beta)};
  }

  std::int64_t tokens;
  Rows<Stored> logits, teacher, gradient;
  std::vector<std::int64_t> labels;
  std::vector<float> weights, values, weighted, entropies;
  std::int64_t row_tokens[1];
};

template <class Block, class Stored>
void run_log_prob(Example<Stored>& example, Block& block) {
  const LogProbArrays<Stored> arrays = example.log_prob();
  for (std::int64_t position = 0; position < example.tokens; ++position) {
    log_prob_row(block, arrays, position);
  }
}

template <class Block, class Stored>
void run_jsd(Example<Stored>& example, Block& block, float beta = 0.25f) {
  const JsdArrays<Stored> arrays = example.jsd(beta);
  for (std::int64_t position = 0; position < example.tokens; ++position) {
    JsdRow(block, arrays, position).run();
  }
}

/// Bits of everything that a program has written.
template <class Stored>
std::vector<std::uint32_t> written(Example<Stored>& example) {
  std::vector<std::uint32_t> bits;
  for (const Stored& x : example.gradient.memory) bits.push_back(as_bits(widened(x)));
  for (float x : example.values) bits.push_back(as_bits(x));
  for (float x : example.weighted) bits.push_back(as_bits(x));
  for (float x : example.entropies) bits.push_back(as_bits(x));
  return bits;
}

constexpr std::int64_t kVocabularies[] = {1, 2, 7, 8, 9, 255, 256, 257, 2047, 2049, 4100};

TEST(RowPrograms, WriteTheirRowsAndNothingElse) {
  for (std::int64_t vocab : kVocabularies) {
    Example<float> log_prob(vocab), jsd(vocab);
    SteppedBlock block(block_threads(vocab));
    run_log_prob(log_prob, block);
    run_jsd(jsd, block);
    for (Example<float>* example : {&log_prob, &jsd}) {
      for (std::int64_t t = 0; t < example->tokens; ++t) {
        EXPECT_TRUE(std::isnan(example->gradient.at(t, vocab))) << vocab;
        for (std::int64_t v = 0; v < vocab; ++v) {
          const float slope = example->gradient.at(t, v);
          EXPECT_TRUE(t == 1 ? slope == 0.0f : std::isfinite(slope)) << vocab << " " << t;
        }
      }
      EXPECT_EQ(example->values[1], 0.0f);
      EXPECT_TRUE(std::isfinite(example->values[2]));
    }
  }
}

TEST(RowPrograms, GiveTheSameBitsInWhateverOrderThreadsRun) {
  for (std::int64_t vocab : {9, 257, 4100}) {
    std::vector<std::vector<std::uint32_t>> log_probs, divergences;
    for (ThreadOrder order :
         {ThreadOrder::forwards, ThreadOrder::backwards, ThreadOrder::shuffled}) {
      Example<float> log_prob(vocab), jsd(vocab);
      SteppedBlock block(block_threads(vocab), order);
      run_log_prob(log_prob, block);
      run_jsd(jsd, block);
      log_probs.push_back(written(log_prob));
      divergences.push_back(written(jsd));
    }
    EXPECT_EQ(log_probs[0], log_probs[1]);
    EXPECT_EQ(log_probs[0], log_probs[2]);
    EXPECT_EQ(divergences[0], divergences[1]);
    EXPECT_EQ(divergences[0], divergences[2]);
  }
}

TEST(RowPrograms, ComputeIn16BitsWhatTheyComputeIn32AndRoundOnce) {
  Example<float> wide(1000);
  Example<Bf16> narrow(1000);
  SteppedBlock block(block_threads(1000));
  run_jsd(wide, block);
  run_jsd(narrow, block);
  EXPECT_EQ(wide.values[0], narrow.values[0]);
  for (std::int64_t v = 0; v < 1000; ++v) {
    Bf16 rounded;
    store(wide.gradient.at(2, v), &rounded);
    EXPECT_EQ(narrow.gradient.at(2, v).bits, rounded.bits) << v;
  }
}

TEST(RowPrograms, WriteTheGradientOverTheLogitsWithTheSameBits) {
  Example<float> apart(600), over(600);
  SteppedBlock block(block_threads(600));
  for (float beta : {0.0f, 0.25f}) {
    over.logits = apart.logits;
    run_jsd(apart, block, beta);
    JsdArrays<float> arrays = over.jsd(beta);
    arrays.gradient = over.logits;
    JsdRow(block, arrays, 2).run();
    for (std::int64_t v = 0; v < 600; ++v) {
      EXPECT_EQ(over.logits.at(2, v), apart.gradient.at(2, v));
    }
  }
}

TEST(RowPrograms, StartWithImpossibleTokensAloneWithoutNan) {
  Example<float> example(5000);
  for (std::int64_t v = 0; v < 4900; ++v) example.logits.at(0, v) = kMinusInfinity;
  SteppedBlock block(block_threads(5000));
  run_log_prob(example, block);
  EXPECT_TRUE(std::isfinite(example.values[0]));
  EXPECT_TRUE(std::isfinite(example.entropies[0]));
  EXPECT_EQ(example.gradient.at(0, 0), 0.0f);
}

TEST(RowPrograms, ShowANanWhereverItStands) {
  for (std::int64_t place : {0, 299, 511}) {
    Example<float> example(512);
    example.logits.at(0, place) = kNan;
    SteppedBlock block(block_threads(512));
    run_log_prob(example, block);
    EXPECT_TRUE(std::isnan(example.values[0])) << place;
    EXPECT_TRUE(std::isnan(example.entropies[0])) << place;
    EXPECT_TRUE(std::isnan(example.gradient.at(0, 5))) << place;
  }
}

TEST(RowPrograms, ReadNothingForALabelOutsideTheVocabulary) {
  for (std::int64_t label : {std::int64_t{-1}, std::int64_t{64}, std::int64_t{1} << 40}) {
    Example<float> example(64);
    example.labels[0] = label;
    SteppedBlock block(32);
    run_log_prob(example, block);
    EXPECT_TRUE(std::isnan(example.values[0])) << label;
    EXPECT_TRUE(std::isfinite(example.values[2])) << label;
  }
}

/// One position whose support lists the tokens.
float sparse_divergence(Example<float>& example, const std::vector<std::int64_t>& tokens,
                        const std::vector<float>& answers, ThreadOrder order, float beta) {
  SparseJsdArrays<float> arrays;
  arrays.batch = example.batch();
  arrays.options = Example<float>::options(beta);
  arrays.vocab = example.logits.vocab;
  arrays.support = static_cast<std::int64_t>(tokens.size());
  arrays.tail_floor = 1e-7f;
  arrays.student = example.logits;
  arrays.gradient = example.gradient;
  arrays.support_token = {tokens.data(), 0, 0};
  arrays.teacher_log_prob = {answers.data(), 0, 0};
  SteppedBlock block(block_threads(arrays.vocab), order);
  SparseJsdRow(block, arrays, 0).run();
  return example.values[0];
}

TEST(SparseJsd, CountsATokenOnceAndGivesTheSameBitsInWhateverOrderThreadsRun) {
  Example<float> once(300), twice(300), backwards(300);
  const float value =
      sparse_divergence(once, {7, 299}, {-1.0f, -2.0f}, ThreadOrder::forwards, 0.3f);
  EXPECT_GT(value, 0.0f);
  EXPECT_EQ(
      sparse_divergence(twice, {7, 299, 7}, {-1.0f, -2.0f, -0.5f}, ThreadOrder::shuffled, 0.3f),
      value);
  sparse_divergence(backwards, {7, 299}, {-1.0f, -2.0f}, ThreadOrder::backwards, 0.3f);
  EXPECT_EQ(written(once), written(twice));
  EXPECT_EQ(written(once), written(backwards));
}

TEST(SparseJsd, ReadsAndWritesNothingForATokenOutsideTheVocabulary) {
  for (std::int64_t token : {std::int64_t{-1}, std::int64_t{300}}) {
    Example<float> example(300);
    EXPECT_TRUE(std::isnan(
        sparse_divergence(example, {7, token}, {-1.0f, -2.0f}, ThreadOrder::forwards, 0.3f)));
    EXPECT_TRUE(std::isnan(example.gradient.at(0, 300)));  // as it was
  }
}

TEST(RowPrograms, ShowAMissingBarrier) {
  Example<float> example(600);
  FakeBlockWithoutBarrier block(block_threads(600));
  EXPECT_THROW(run_log_prob(example, block), BlockFault);
  EXPECT_THROW(run_jsd(example, block), BlockFault);
}

TEST(RowPrograms, ShowATailThatIsOffByOne) {
  Example<float> longer(601), shorter(601);
  FakeBlockWithLongTail longer_block(block_threads(601));
  run_log_prob(longer, longer_block);
  EXPECT_TRUE(std::isnan(longer.values[0]));    // what lies beside the row was read
  EXPECT_EQ(longer.gradient.at(1, 601), 0.0f);  // and written
  FakeBlockWithShortTail shorter_block(block_threads(601));
  const float before = shorter.gradient.at(1, 600);
  run_log_prob(shorter, shorter_block);
  EXPECT_EQ(shorter.gradient.at(1, 600), before);  // where a zero belongs
}

float in_halves(std::vector<float> terms) {
  for (std::size_t half = terms.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) terms[i] += terms[i + half];
  }
  return terms[0];
}

/// log sum exp(x - max x) of 2048 logits in the declared order, written down once more: eight to a
/// thread, 32 threads to a warp, eight warps, each in halves.
float declared_log_sum(const std::vector<float>& logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<float> warps(32, 0.0f);
  for (std::size_t warp = 0; warp < 8; ++warp) {
    std::vector<float> threads;
    for (std::size_t thread = 0; thread < 32; ++thread) {
      const float* const own = logits.data() + (warp * 32 + thread) * 8;
      const float own_largest = *std::max_element(own, own + 8);
      std::vector<float> powers;
      for (int j = 0; j < 8; ++j) {
        powers.push_back(std::exp(own[j] - own_largest) * std::exp(own_largest - largest));
      }
      threads.push_back(in_halves(powers));
    }
    warps[warp] = in_halves(threads);
  }
  return std::log(in_halves(warps));
}

/// So that the last bit of the sum shows in its logarithm.
std::vector<float> nearly_one_hot() {
  std::mt19937 engine(4);
  std::normal_distribution<float> normal(-9.0f, 3.0f);
  std::vector<float> logits(2048);
  for (float& x : logits) x = normal(engine);
  logits[77] = 9.0f;
  return logits;
}

template <class Block>
float log_sum(const std::vector<float>& logits) {
  Block block(256);
  BlockReduction<Block> reduction(block);
  return softmax_of(block, reduction, logits.data(), 2048, 1.0f).log_sum;
}

TEST(RowPrograms, AddInTheDeclaredOrder) {
  const std::vector<float> logits = nearly_one_hot();
  EXPECT_EQ(log_sum<SteppedBlock>(logits), declared_log_sum(logits));
}

TEST(RowPrograms, ShowAReductionInAnotherOrder) {
  const std::vector<float> logits = nearly_one_hot();
  EXPECT_NE(log_sum<FakeBlockOfNeighbours>(logits), declared_log_sum(logits));
}

/// Three positions of one sequence whose rows lie 2^31 elements apart, and two sequences 2^32
/// apart.
template <class Block>
std::vector<float> far_apart() {
  constexpr std::int64_t kVocab = 5, kApart = std::int64_t{1} << 31;
  constexpr std::size_t kElements = (std::size_t{1} << 32) + 2 * (std::size_t{1} << 31) + kVocab;
  const SparseMemory<Bf16> logits(kElements), gradient(kElements);
  Example<Bf16> example(kVocab);
  example.labels = {4, 4, 4, 4, 4, 4};
  LogProbArrays<Bf16> arrays = example.log_prob();
  std::vector<float> values(6, kNan), spare(12);
  arrays.batch.sequences = 2;
  arrays.batch.per_token = {values.data(), 3, 1};
  arrays.batch.weighted = {spare.data(), 3, 1};
  arrays.entropy = {spare.data() + 6, 3, 1};
  arrays.labels.wide.sequence_stride = arrays.batch.validity.labels.wide.sequence_stride = 3;
  arrays.logits = {logits.data(), 2 * kApart, kApart};
  arrays.gradient = {gradient.data(), 2 * kApart, kApart};
  for (std::size_t i = 0; i < 3; ++i) {  // positions 0, 2^31 and 2^32 of the first sequence
    store(static_cast<float>(i), logits.data() + i * kApart + 4);
  }
  Block block(32);
  for (std::int64_t position : {0, 1, 2, 5}) log_prob_row(block, arrays, position);
  values.push_back(widened(gradient[2 * kApart * 2 + 4]));
  return values;
}

TEST(RowPrograms, IndexIn64Bits) {
  const std::vector<float> values = far_apart<SteppedBlock>();
  EXPECT_FLOAT_EQ(values[0], -std::log(5.0f));
  EXPECT_GT(values[1], values[0]);
  EXPECT_GT(values[2], values[1]);
  EXPECT_NE(values.back(), 0.0f);
}

TEST(RowPrograms, ShowAnIndexOf32Bits) {
  const std::vector<float> values = far_apart<FakeBlockWithNarrowIndex>();
  EXPECT_EQ(values[2], values[0]);  // 2^32 is 0
}

}  // namespace
}  // namespace lossgate::impl
