// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reference/reference.h"

/// A payload written by hand, and the rectangle that it makes.
namespace lossgate::reference {
namespace {

constexpr double kMinusInfinity = -HUGE_VAL;

/// One sequence: prompt 2 of 4 tokens. Three entries for its first token, one for its second.
constexpr const char* kFirst =
    R"({"prompt_lengths":[2],"sequence_lengths":[4],)"
    R"("logprobs":[[[-0.5,-1.5,-2.5],[-0.125]]],"logprob_token_ids":[[[11,12,13],[21]]],)"
    R"("actual_logprobs":[[[-1.5],[-8]]]})";
/// Two sequences of one token, prompts 1 and 5: log-probs -1, -2 and -4, -inf; -3 and -6.
constexpr const char* kSecond =
    R"({"prompt_lengths":[1,5],"sequence_lengths":[2,6],"shape":[2,1,2],)"
    R"("completion_lengths":[1,1],"logprobs_b64":"AACAvwAAAMAAAIDAAACA/w==",)"
    R"("token_ids_b64":"HwAAACAAAAApAAAAAAAAAA==","actual_logprobs_b64":"AABAwAAAwMA="})";

Case hand_written() {
  std::string first = kFirst, second = kSecond;
  const std::size_t bytes = std::max(first.size(), second.size());
  first.resize(bytes, ' ');
  second.resize(bytes, ' ');
  Case c;
  c.spec = standard_spec(*find_signature("teacher_payload"));
  c.shape[Axis::sequences] = 3;
  c.shape[Axis::tokens] = 3;
  c.shape[Axis::support] = 3;
  c.shape[Axis::responses] = 2;
  c.shape[Axis::bytes] = static_cast<std::int64_t>(bytes);
  Tensor payload = Tensor::zeros(Dtype::u8, c.shape.of({Axis::responses, Axis::bytes}));
  std::int64_t at = 0;
  for (char byte : first + second) payload.set(at++, static_cast<unsigned char>(byte));
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

struct Kept : Sink<Tracked> {
  std::map<std::size_t, std::vector<double>> values;
  double largest_error = 0.0;
  void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
    largest_error = std::max(largest_error, value.err);
    values[output].resize(std::max(values[output].size(), static_cast<std::size_t>(index) + 1));
    values[output][static_cast<std::size_t>(index)] = static_cast<double>(value.v);
  }
};

Kept evaluated(const Case& c) {
  const Loss& loss = *find_loss("teacher_payload");
  const auto refusal = expected_refusal(loss, c);
  EXPECT_FALSE(refusal) << refusal->message;
  const Problem problem(loss.signature, c);
  Kept kept;
  evaluate(loss, problem, plain_arithmetic(Dtype::f32, ""), kept);
  return kept;
}

TEST(WorkedTeacherPayload, IsMergedAndPadded) {
  auto values = evaluated(hand_written()).values;
  constexpr double x = kMinusInfinity;
  EXPECT_EQ(values[0], (std::vector<double>{-0.5, -1.5, -2.5, -0.125, x, x, x, x, x,  //
                                            -1,   -2,   x,    x,      x, x, x, x, x,  //
                                            -4,   x,    x,    x,      x, x, x, x, x}));
  EXPECT_EQ(values[1], (std::vector<double>{11, 12, 13, 21, 0, 0, 0, 0, 0,  //
                                            31, 32, 0,  0,  0, 0, 0, 0, 0,  //
                                            41, 0,  0,  0,  0, 0, 0, 0, 0}));
  EXPECT_EQ(values[2], (std::vector<double>{-1.5, -8, x, -3, x, x, -6, x, x}));
  EXPECT_EQ(values[3], std::vector<double>(9, 0.0)) << "nobody gave the sampled tokens' ids";
}

TEST(WorkedTeacherPayload, IsPaddedWithTheFillerThatWasAskedFor) {
  Case c = hand_written();
  c.spec.set("filler", -1e9);
  auto values = evaluated(c).values;
  EXPECT_EQ(values[0][4], -1e9);
  EXPECT_EQ(values[0][19], kMinusInfinity) << "a value that the teacher gave";
  EXPECT_EQ(values[2], (std::vector<double>{-1.5, -8, -1e9, -3, -1e9, -1e9, -6, -1e9, -1e9}));
}

TEST(TeacherPayload, LosesWhatItsOutputsLoseAndNothingBefore) {
  Case c = hand_written();
  c.spec.set("filler", -0.1);
  EXPECT_EQ(evaluated(c).largest_error, 0.0);
}

TEST(TeacherPayload, IsNotFilledWithWhatIsNoLogProb) {
  Case c = hand_written();
  const Loss& loss = *find_loss("teacher_payload");
  for (const double log_prob : {-1e9, -0.5, 0.0}) {
    c.spec.set("filler", log_prob);
    EXPECT_FALSE(expected_refusal(loss, c)) << log_prob;
  }
  c.spec.set("filler", 0.5);
  EXPECT_EQ(expected_refusal(loss, c).value().argument, "filler");
}

}  // namespace
}  // namespace lossgate::reference
