// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "reference/given_case.h"
#include "reference/given_one_token.h"
#include "reference/losses/softmax_divergence.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

constexpr std::int64_t kVocab = 4099;
constexpr float kLargest = 18.5f;

// A token that is all but certain has hardly a slope, of which p times what comes back to the
// normaliser is cancelled: that has the format in which the normaliser was stored.
TEST(Entropy, AsADifferenceKeepsWhatANormaliserThatIsStoredLosesOnTheWayBack) {
  const double u = unit_roundoff(Dtype::bf16);
  for (const char* form : {kEntropyDifferenceForm, kGapForm}) {
    const bool entropy = form == std::string_view(kEntropyDifferenceForm);
    Arithmetic arithmetic = plain_arithmetic(Dtype::f32, form);
    arithmetic.stage(Stage::log_prob) = {u, min_subnormal(Dtype::bf16)};
    Case c = zero_case(*find_signature(entropy ? "entropy_bonus" : "jsd"), 1, 1, 2);
    c.spec.set(entropy ? "coefficient" : "beta", 1.0);
    for (const char* field : {"logits", "student_logits", "teacher_logits"}) {
      if (Tensor* row = c.batch.find(field)) row->set(0, -40.0);
    }
    if (Tensor* mask = c.batch.find("mask")) mask->set(0, 1.0);
    EXPECT_GE(OneToken(c, arithmetic).gradient.err, 0.99 * u) << form;
  }
}

TEST(Entropy, AsADifferenceMeetsTheLogitsWithWhatTheNormaliserLost) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  arithmetic.sum.order = SumOrder::sequential;
  const ArithmeticScope scope(arithmetic);
  Row<Tracked> x = Row<Tracked>::Constant(kVocab, Entry<Tracked>::stored(0.0, -1));
  x[0] = Entry<Tracked>::stored(kLargest, -1);
  // In f32, one after the other: no other class adds anything to the largest one's 1.
  float sum = 0.0f, mean = 0.0f;
  for (std::int64_t v = 0; v < kVocab; ++v) sum += std::exp((v == 0 ? kLargest : 0.0f) - kLargest);
  mean = kLargest / sum;
  const double actual = kLargest + std::log(sum) - mean;
  const LogSumExp<Tracked> whole = log_sum_exp(x);
  const auto scaled = [](const Cancelling<Tracked>& slope) { return slope.sum; };
  const Tracked of_log_probs =
                    entropy_of_log_probs(log_softmax(x, SoftmaxForm::shifted), false, scaled).value,
                difference =
                    entropy_as_difference(x, log_softmax(x, whole, SoftmaxForm::by_logsumexp),
                                          whole, false, scaled)
                        .value;
  const double error = std::fabs(actual - static_cast<double>(of_log_probs.v));
  EXPECT_GT(error, kThreshold * of_log_probs.err);
  EXPECT_LE(error, kThreshold * difference.err);
}

TEST(Entropy, AsADifferenceMultipliesItsLogitsBeforeItsProbabilities) {
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(arithmetic);
  const Row<Tracked> x = Row<Tracked>::Constant(1, Entry<Tracked>::stored(1e36, -1));
  const Tracked upstream = Entry<Tracked>::stored(655.36, -1);
  const LogSumExp<Tracked> whole = log_sum_exp(x);
  const auto scaled = [&](const Cancelling<Tracked>& slope) {
    return distributed(slope, upstream);
  };
  const auto peak = [](const RowFunction<Tracked>& h) { return h.gradient[0].peak; };
  EXPECT_GT(peak(entropy_as_difference(x, log_softmax(x, whole, SoftmaxForm::by_logsumexp), whole,
                                       false, scaled)),
            6.5e38);
  EXPECT_LT(peak(entropy_of_log_probs(log_softmax(x, SoftmaxForm::shifted), false, scaled)),
            max_finite(Dtype::f32));
}

struct OfEntropy final : Sink<Tracked> {
  void entry(std::size_t output, std::int64_t index, const Tracked& x) override {
    if (output == 2) value = x;
    if (output == 3 && index == 0) slope = x;
  }
  Tracked value, slope;
};

TEST(Entropy, OfTheSelectedLogProbIsChargedInItsForm) {
  const Loss& loss = *find_loss("log_prob");
  Case c = zero_case(loss.signature, 1, 1, 3);
  for (std::int64_t v = 0; v < 3; ++v) c.batch.at("logits").set(v, 1000.0 + static_cast<double>(v));
  c.batch.at("entropy_weight").set(0, 1.0);
  c.upstream = 1.0;
  const Problem problem(loss.signature, c);
  ASSERT_EQ(problem.outputs.at(2).name, "entropy");
  ASSERT_EQ(problem.outputs.at(3).name, "gradient.logits");
  const auto asked = [&](const char* form) {
    OfEntropy kept;
    evaluate(loss, problem, plain_arithmetic(Dtype::f32, form), kept);
    return kept;
  };
  const OfEntropy stable = asked(kShiftedForm), lse = asked(kLogSumExpForm),
                  difference = asked(kEntropyDifferenceForm), undeclared = asked("");
  EXPECT_GT(difference.value.err, 10.0 * stable.value.err);
  EXPECT_GT(difference.value.err, 1.5 * lse.value.err);
  EXPECT_EQ(undeclared.value.err, std::max(lse.value.err, difference.value.err));
  EXPECT_EQ(undeclared.slope.err, std::max(lse.slope.err, difference.slope.err));
  EXPECT_EQ(undeclared.value.v, stable.value.v);
}

}  // namespace
}  // namespace lossgate::reference
