// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/kto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

constexpr const char *kTail = "sigmoid(-h)", *kComplement = "1 - sigmoid(h)", *kAny = "";

/// One desirable answer of f32 log-probs.
Case answer_of(double log_prob, double ref_log_prob) {
  Case one = zero_case(*find_signature("kto"), 1, -1);
  one.spec.reduction = Reduction::sum;
  one.spec.set("beta", 1.0);
  one.batch.at("log_prob").set(0, log_prob);
  one.batch.at("ref_log_prob").set(0, ref_log_prob);
  one.batch.at("desirable").set(0, 1.0);
  return one;
}

/// The answer's term and its gradient.
struct Found {
  Tracked value, gradient;
};

Found found(const Case& c, const Arithmetic& arithmetic) {
  struct Kept : Sink<Tracked> {
    std::vector<Tracked> entries;
    void entry(std::size_t, std::int64_t, const Tracked& value) override {
      entries.push_back(value);
    }
  } kept;
  const Loss& loss = *find_loss("kto");
  evaluate(loss, Problem(loss.signature, c), arithmetic, kept);
  return {kept.entries.at(0), kept.entries.at(1)};
}

Found found(const Case& c, const std::string& form, Dtype compute = Dtype::f32) {
  return found(c, plain_arithmetic(compute, form));
}

/// f32, whose terms are stored in another format.
Arithmetic stored_terms(Dtype dtype) {
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, kTail);
  arithmetic.stage(Stage::per_token) = {unit_roundoff(dtype), min_subnormal(dtype)};
  return arithmetic;
}

double size_of(const Tracked& x) { return std::fabs(static_cast<double>(x.v)); }

TEST(Kto, HasNoDigitOfASmallTermThatIsWhatASigmoidLeavesOfOne) {
  const Case far = answer_of(-10.0, -30.0);
  const Tracked tail = found(far, kTail).value;
  EXPECT_NEAR(static_cast<double>(tail.v), std::exp(-20.0), 1e-6 * std::exp(-20.0));
  EXPECT_LT(kThreshold * tail.err, 1e-3 * size_of(tail));
  for (const char* form : {kComplement, kAny}) {
    EXPECT_GT(kThreshold * found(far, form).value.err, std::exp(-20.0))
        << form << ": 0 is as right";
    EXPECT_LT(found(far, form).value.err, 8.0 * unit_roundoff(Dtype::f32)) << form;
  }
}

TEST(Kto, KeepsTheDigitsOfATermThatIsNotSmallInEitherForm) {
  const double u = unit_roundoff(Dtype::f32);
  for (const char* form : {kTail, kComplement, kAny}) {
    const Found near = found(answer_of(-10.0, -10.5), form);
    EXPECT_LT(near.value.err, 8.0 * u) << form;
    EXPECT_LT(near.gradient.err, 8.0 * u) << form;
  }
}

TEST(Kto, HasNoNumberWhereBothScaledLogProbsOverflowWhateverWeighsIt) {
  Case far = answer_of(-5e37, -49e36);
  far.spec.set("beta", 10.0);
  far.spec.set("desirable_weight", 0.0);
  EXPECT_TRUE(tracking::undefined(found(far, kAny).value));
  EXPECT_TRUE(tracking::undefined(found(far, kAny).gradient));
  for (const char* form : {kTail, kComplement}) {
    EXPECT_FALSE(tracking::undefined(found(far, form).value)) << form;
    EXPECT_FALSE(tracking::undefined(found(far, form).gradient)) << form;
  }
}

TEST(Kto, MayBeStoredBeforeItsWeightComes) {
  Case small = answer_of(-10.0, -22.7);  // 3e-6 is left of 1
  small.spec.set("desirable_weight", 10.0);
  EXPECT_GE(kThreshold * found(small, stored_terms(Dtype::f16)).value.err,
            10.0 * min_subnormal(Dtype::f16) / 2);
  // What comes back to the term is beyond f16 where its weight has met it.
  Case large = answer_of(-10.0, -10.0);
  large.upstream = 32768.0;
  EXPECT_LE(found(large, stored_terms(Dtype::f16)).gradient.peak, max_finite(Dtype::f16));
  large.spec.set("desirable_weight", 10.0);
  EXPECT_GT(found(large, stored_terms(Dtype::f16)).gradient.peak, max_finite(Dtype::f16));
}

TEST(Kto, LosesADerivativeByAutogradWhereItsSigmoidIsNearOne) {
  const Case above = answer_of(-10.0, -30.0), below = answer_of(-30.0, -10.0);
  for (const auto& [form, kept, lost] :
       {std::tuple(kTail, above, below), std::tuple(kComplement, below, above)}) {
    const Tracked in_digits = found(kept, form).gradient, cancelled = found(lost, form).gradient;
    EXPECT_NEAR(static_cast<double>(in_digits.v), -std::exp(-20.0), 1e-6 * std::exp(-20.0));
    EXPECT_NEAR(static_cast<double>(cancelled.v), -std::exp(-20.0), 1e-6 * std::exp(-20.0));
    EXPECT_LT(kThreshold * in_digits.err, 1e-3 * size_of(in_digits)) << form;
    EXPECT_GT(kThreshold * cancelled.err, size_of(cancelled)) << form << ": 0 is as right";
  }
  for (const Case& c : {above, below}) {
    EXPECT_GT(kThreshold * found(c, kAny).gradient.err, std::exp(-20.0));
  }
}

TEST(Kto, TurnsTheGradientRoundForAnUndesirableAnswer) {
  for (const char* form : {kTail, kComplement, kAny}) {
    Case c = answer_of(-10.0, -10.5);
    const Found liked = found(c, form);
    c.batch.at("desirable").set(0, 0.0);
    const Found other = found(c, form);
    EXPECT_LT(liked.gradient.v, 0.0L) << form;
    EXPECT_EQ(liked.gradient.v, -other.gradient.v) << form;
    EXPECT_NEAR(static_cast<double>(liked.value.v + other.value.v), 1.0, 1e-15) << form;
  }
}

TEST(Kto, MayMeetItsDivergenceFirstWhereNoFormIsDeclared) {
  // -1000.25 - 1/2 rounds at 1000; the log-ratio of -1/4 less 1/2 does not.
  Case near = answer_of(-1000.25, -1000.0);
  near.spec.set("kl", 0.5);
  const double u = unit_roundoff(Dtype::f32);
  for (const char* form : {kTail, kComplement}) {
    EXPECT_LT(found(near, form).value.err, 10.0 * u) << form;
  }
  EXPECT_GT(found(near, kAny).value.err, 100.0 * u);
}

TEST(Kto, MayBeOfScaledLogProbsThatOverflowWhereNoFormIsDeclared) {
  // Ten times 5e37 is no number in f32, ten times what lies between both log-probs is.
  Case far = answer_of(-5e37, -49e36);
  far.spec.set("beta", 10.0);
  EXPECT_LE(found(far, kTail).value.peak, max_finite(Dtype::f32));
  EXPECT_GT(found(far, kAny).value.peak, max_finite(Dtype::f32));
}

TEST(Kto, WeighsNothingIntoATermOfNoWeight) {
  Case c = answer_of(-10.0, -10.5);
  c.spec.set("desirable_weight", 0.0);
  for (const char* form : {kTail, kComplement, kAny}) {
    EXPECT_TRUE(found(c, form).value.is_exact_zero()) << form;
    EXPECT_EQ(found(c, form).gradient.v, 0.0L) << form;
  }
}

}  // namespace
}  // namespace lossgate::reference
