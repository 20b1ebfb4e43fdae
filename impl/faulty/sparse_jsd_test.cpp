// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/sparse_jsd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "impl/faulty/sparse_jsd_eager.h"
#include "impl/validate_teacher.h"

/// The padding sentinel of a teacher server, as in huggingface/trl#5594, in cases written by hand.
namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kVocab = 4;

LossSignature sparse_signature() {
  const std::vector<Axis> positions = {Axis::sequences, Axis::tokens};
  const auto along = [&](Axis axis) {
    std::vector<Axis> axes = positions;
    axes.push_back(axis);
    return axes;
  };
  const auto option = [](std::string name, double standard) {
    return Option{.name = std::move(name), .standard = standard, .low = 0.0, .high = 10.0};
  };
  return {.id = "sparse_jsd",
          .title = "for tests",
          .formula = "as in the reference",
          .source = "none",
          .options = {option("beta", 1.0), option("temperature", 1.0), option("num_items", 8.0),
                      option("tail", 1.0), option("tail_floor", 1e-7)},
          .fields = {{.name = "student_logits",
                      .role = Role::differentiable,
                      .quantity = Quantity::logit,
                      .axes = along(Axis::vocab)},
                     {.name = "support_token",
                      .quantity = Quantity::label,
                      .axes = along(Axis::support),
                      .dtypes = {Dtype::i64}},
                     {.name = "teacher_log_prob",
                      .quantity = Quantity::log_prob,
                      .axes = along(Axis::support),
                      .infinity = Infinity::refused},
                     {.name = "label",
                      .role = Role::label,
                      .quantity = Quantity::label,
                      .axes = positions,
                      .dtypes = {Dtype::i64}}},
          .outputs = {{.name = "per_token", .axes = positions}},
          .reductions = {Reduction::token_mean},
          .ignore_label = "label"};
}

/// Two sequences of three tokens, with padding on either side: 3 of 6 positions count.
Case padded_case(double beta, bool tail) {
  const LossSignature signature = sparse_signature();
  Case c;
  c.spec = standard_spec(signature);
  c.spec.set("beta", beta);
  c.spec.set("tail", tail ? 1.0 : 0.0);
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 3;
  c.shape[Axis::vocab] = kVocab;
  c.shape[Axis::support] = 2;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  constexpr bool kValid[] = {false, true, true, true, false, false};
  for (std::int64_t at = 0; at < 6; ++at) {
    const bool valid = kValid[at];
    c.batch.at("label").set(at, valid ? 1.0 : static_cast<double>(kIgnoreLabel));
    for (std::int64_t v = 0; v < kVocab; ++v) {
      c.batch.at("student_logits").set(at * kVocab + v, 0.25 * static_cast<double>(at + v * v));
    }
    for (std::int64_t k = 0; k < 2; ++k) {
      c.batch.at("support_token").set(at * 2 + k, valid ? static_cast<double>(k + 1) : 0.0);
      c.batch.at("teacher_log_prob")
          .set(at * 2 + k, valid ? -1.0 - static_cast<double>(k) : -kInfinity);
    }
  }
  return c;
}

LossResult run(SparseJsdFault fault, const Case& c) {
  const Step step = [fault](MicroBatch& part) { return eager_sparse_jsd(part, fault); };
  return train(sparse_signature(), c, step, {.check = &require_valid_sparse_jsd});
}

int not_finite(const LossResult& result, std::string_view output) {
  const Tensor& tensor = *result.find(output);
  int count = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) count += !std::isfinite(tensor.at(i));
  return count;
}

TEST(SparseJsd, SelectsBeforeTheMathsAtEveryEndOfBeta) {
  for (double beta : {0.0, 0.5, 1.0}) {
    for (bool tail : {false, true}) {
      const LossResult result = run(SparseJsdFault::none, padded_case(beta, tail));
      EXPECT_EQ(not_finite(result, "loss") + not_finite(result, "gradient.student_logits"), 0);
      EXPECT_GT(result.find("loss")->at(0), 0.0);
    }
  }
}

TEST(SparseJsd, AnUnmaskedSentinelSpoilsTheGradientAndNotTheLoss) {
  const LossResult result = run(SparseJsdFault::sentinel_unmasked, padded_case(1.0, true));
  EXPECT_EQ(not_finite(result, "loss"), 0);
  EXPECT_EQ(not_finite(result, "per_token"), 0);
  EXPECT_EQ(not_finite(result, "gradient.student_logits"), 3 * kVocab);
}

TEST(SparseJsd, AnUnmaskedSentinelSpoilsEveryMicroBatch) {
  for (const bool two_ranks : {false, true}) {
    Case c = padded_case(1.0, true);
    c.split = {.world = two_ranks ? 2 : 1,
               .parts = {{.rank = 0, .sequences = {0}}, {.rank = two_ranks, .sequences = {1}}}};
    const LossResult result = run(SparseJsdFault::sentinel_unmasked, c);
    EXPECT_EQ(not_finite(result, "gradient.student_logits"), 3 * kVocab);
  }
}

TEST(SparseJsd, AMixtureWithATailWouldNotHaveShownIt) {
  const auto spoilt = [](bool tail) {
    return not_finite(run(SparseJsdFault::sentinel_unmasked, padded_case(0.5, tail)),
                      "gradient.student_logits");
  };
  EXPECT_EQ(spoilt(true), 0);
  EXPECT_EQ(spoilt(false), 3 * kVocab);
}

TEST(SparseJsd, AFloorBehindTheLogarithmOfATailComesTooLateForRoundedMass) {
  Case c = padded_case(0.5, true);
  const auto spoilt = [&](SparseJsdFault fault) { return not_finite(run(fault, c), "loss"); };
  EXPECT_EQ(spoilt(SparseJsdFault::tail_floored_after_logarithm), 0);
  Tensor& teacher = c.batch.at("teacher_log_prob");
  for (std::int64_t i = 0; i < teacher.size(); ++i) teacher.set(i, i % 2 == 0 ? 0.0 : -16.0);
  EXPECT_EQ(spoilt(SparseJsdFault::tail_floored_after_logarithm), 1);
  EXPECT_EQ(spoilt(SparseJsdFault::none), 0);
}

TEST(SparseJsd, RefusesAMissingAnswerThatItNeeds) {
  Case c = padded_case(1.0, true);
  c.batch.at("teacher_log_prob").set(4 * 1 + 1, -kInfinity);
  const LossResult result = run(SparseJsdFault::none, c);
  ASSERT_TRUE(result.refusal.has_value());
  EXPECT_EQ(result.refusal->argument, "teacher_log_prob");
  EXPECT_EQ(result.refusal->sequence, 0);
  EXPECT_EQ(result.refusal->token, 2);
}

TEST(SparseJsd, TakesAMissingAnswerForImpossibleInTheForwardDirection) {
  Case c = padded_case(0.0, true);
  c.batch.at("teacher_log_prob").set(4 * 1 + 1, -kInfinity);
  const LossResult result = run(SparseJsdFault::none, c);
  ASSERT_FALSE(result.refusal.has_value());
  EXPECT_EQ(not_finite(result, "gradient.student_logits"), 0);
}

}  // namespace
}  // namespace lossgate::impl
