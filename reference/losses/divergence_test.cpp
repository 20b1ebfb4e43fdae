// SPDX-License-Identifier: Apache-2.0
#include "reference/losses/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "reference/losses/softmax_divergence.h"

namespace lossgate::reference {
namespace {

constexpr Real kStep = 1e-5L;

Row<Real> row_of(std::initializer_list<Real> entries) {
  Row<Real> row(static_cast<Eigen::Index>(entries.size()));
  std::ranges::copy(entries, row.begin());
  return row;
}

/// The divergence's value where entry `v` of each row is moved by so many steps.
Real moved(Row<Real> student, Row<Real> teacher, Eigen::Index v, int by, int other, Real beta) {
  student[v] += static_cast<Real>(by) * kStep;
  teacher[v] += static_cast<Real>(other) * kStep;
  return jensen_shannon(student, teacher, beta).value;
}

TEST(MixtureDerivatives, AreWhatDifferencesGive) {
  const Row<Real> student = row_of({-0.3L, -2.0L, -9.0L}), teacher = row_of({-1.5L, -0.4L, -3.0L});
  for (const Real beta : {0.1L, 0.5L, 0.7L}) {
    for (Eigen::Index v = 0; v < student.size(); ++v) {
      const auto at = [&](int by, int other) {
        return moved(student, teacher, v, by, other, beta);
      };
      const auto by = MixedEntry(student[v], teacher[v], beta).derivatives();
      const auto near = [](Real a, Real b) { return std::fabs(a - b) < 1e-8L; };
      const Real square = kStep * kStep, middle = at(0, 0);
      EXPECT_PRED2(near, by.student, (at(1, 0) - at(-1, 0)) / (2 * kStep));
      EXPECT_PRED2(near, by.teacher, (at(0, 1) - at(0, -1)) / (2 * kStep));
      EXPECT_PRED2(near, by.student + by.mixed, (at(1, 0) - 2 * middle + at(-1, 0)) / square);
      EXPECT_PRED2(near, by.teacher + by.mixed, (at(0, 1) - 2 * middle + at(0, -1)) / square);
      EXPECT_PRED2(near, -by.mixed, (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * square));
    }
  }
}

TEST(Divergence, MayWeightATinyProbabilityBeforeItsLogarithm) {
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(arithmetic);
  const auto stored = [](double x) { return Entry<Tracked>::stored(x, -1); };
  Row<Tracked> student(1), teacher(1);
  teacher[0] = stored(-1.0);
  double worst = 0.0;
  for (int i = 0; i < 200; ++i) {
    student[0] = stored(static_cast<float>(-100.0 - 0.01 * i));
    const Tracked slope = jensen_shannon(student, teacher, 0.75L, Mixture::by_logarithms).slope[0];
    const auto l = static_cast<float>(student[0].v);
    const float mixture = std::log(0.25f * std::exp(l) + 0.75f * std::exp(-1.0f));
    const float p = std::exp(l), actual = 0.25f * p * (l - mixture);  // a quarter of p comes first
    const double off = std::fabs(actual - static_cast<double>(slope.v));
    worst = std::max(worst, off / slope.err);
  }
  EXPECT_GT(worst, 0.25);
  EXPECT_LT(worst, kThreshold);
}

TEST(LogAdd, MayRoundTheSumWhoseLogarithmItTakes) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  const auto stored = [](double x) { return Entry<Tracked>::stored(x, -1); };
  for (const double gap : {0.5, 8.0, 30.0}) {
    const Tracked sum = log_add(stored(0.0), stored(-gap));
    EXPECT_GT(sum.err, 0.99 * single.roundoff) << "a rounding of 1 + e";
    EXPECT_LT(sum.err, 4.0 * single.roundoff);
    EXPECT_EQ(sum.err, log_add(stored(-gap), stored(0.0)).err);
    EXPECT_NEAR(static_cast<double>(sum.v), std::log1p(std::exp(-gap)), 1e-15);
  }
  EXPECT_LT(log_add(stored(0.0), stored(-HUGE_VAL)).err, 1e-6 * single.roundoff)
      << "nothing to add";
}

TEST(Divergence, MayRoundTheShareOfTheStudentBeforeItsLogarithm) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  Row<Tracked> alike(1);
  alike[0] = Entry<Tracked>::stored(0.0, -1);
  // log m = log(1 - beta) + log(1 + beta / (1 - beta)) = 0, and 1 - beta is no number of f32.
  const double error = jensen_shannon(alike, alike, 1e-6L).value.err;
  EXPECT_GT(error, 1.9 * single.roundoff);
  EXPECT_LT(error, 4.0 * single.roundoff);
}

/// In f32, of one class: the slope of (1 - beta) p (s - m) + beta q (t - m) by s, as a backward has
/// it whose m is log1p of an expm1 from the one side or the other.
float slope_by_expm1(float s, float t, float beta, bool from_student) {
  const float rest = 1.0f - beta, weight = from_student ? beta : rest;
  const float less = std::expm1(from_student ? t - s : s - t), inner = 1.0f + weight * less;
  const float m = (from_student ? s : t) + std::log1p(weight * less);
  const float by_gap = weight * (less + 1.0f) / inner;
  const float through = from_student ? 1.0f - by_gap : by_gap;
  const float p = std::exp(s), q = std::exp(t);
  return rest * p * (s - m) + (rest * p - (rest * p + beta * q) * through);
}

TEST(Divergence, MayMakeItsMixtureOfAnExpm1FromEitherSide) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  double worst = 0.0, worst_of_logarithms = 0.0;
  for (const float beta : {0.0625f, 0.5f, 0.9375f}) {
    for (int i = -300; i <= 300; ++i) {
      const auto gap = static_cast<float>(0.1 * i);
      const float s = std::min(-0.1f, -0.1f - gap), t = std::min(-0.1f, -0.1f + gap);
      Row<Tracked> student(1), teacher(1);
      student[0] = Entry<Tracked>::stored(s, -1), teacher[0] = Entry<Tracked>::stored(t, -1);
      const auto ratio = [&](Mixture form) {
        const Tracked slope = jensen_shannon(student, teacher, beta, form).slope[0];
        double most = 0.0;
        for (const bool from_student : {true, false}) {
          const double actual = slope_by_expm1(s, t, beta, from_student);
          most = std::max(most, std::fabs(actual - static_cast<double>(slope.v)) / slope.err);
        }
        return most;
      };
      worst = std::max(worst, ratio(Mixture::in_any_way));
      worst_of_logarithms = std::max(worst_of_logarithms, ratio(Mixture::by_logarithms));
    }
  }
  EXPECT_LT(worst, kThreshold);
  EXPECT_GT(worst, 0.1);
  EXPECT_GT(worst_of_logarithms, 100.0);
}

TEST(Divergence, HasNothingToMakeAnExpm1OfWhereASideIsImpossible) {
  const Arithmetic single = plain_arithmetic(Dtype::f32, "");
  const ArithmeticScope scope(single);
  const auto slope = [](double s, double t) {
    Row<Tracked> student(1), teacher(1);
    student[0] = Entry<Tracked>::stored(s, -1), teacher[0] = Entry<Tracked>::stored(t, -1);
    return jensen_shannon(student, teacher, 0.5L).slope[0];
  };
  EXPECT_TRUE(slope(-HUGE_VAL, -1.0).is_exact_zero());
  EXPECT_TRUE(slope(-HUGE_VAL, -HUGE_VAL).is_exact_zero());
  EXPECT_LT(slope(-1.0, -HUGE_VAL).err, 1.0);
}

TEST(MixtureDerivatives, OfWhatIsImpossibleAreZero) {
  const auto student = MixedEntry(-HUGE_VALL, -1.0L, 0.25L).derivatives(),
             teacher = MixedEntry(-1.0L, -HUGE_VALL, 0.25L).derivatives(),
             both = MixedEntry(-HUGE_VALL, -HUGE_VALL, 0.25L).derivatives();
  EXPECT_EQ(student.student, 0.0L);
  EXPECT_NEAR(static_cast<double>(student.teacher), 0.25 * std::exp(-1.0) * -std::log(0.25), 1e-12);
  EXPECT_EQ(teacher.teacher, 0.0L);
  EXPECT_NEAR(static_cast<double>(teacher.student), 0.75 * std::exp(-1.0) * -std::log(0.75), 1e-12);
  for (const auto& by : {student, teacher, both}) EXPECT_EQ(by.mixed, 0.0L);
  EXPECT_EQ(both.student, 0.0L);
  EXPECT_EQ(both.teacher, 0.0L);
}

/// Two rows of log-probs in f32 that are nearly the same, with the errors of their softmax.
class NearlyEqual : public testing::Test {
 protected:
  NearlyEqual() {
    std::mt19937_64 engine(1);
    std::normal_distribution<double> normal;
    Row<Tracked> x(kVocab), y(kVocab);
    for (Eigen::Index v = 0; v < kVocab; ++v) {
      const auto at = static_cast<float>(normal(engine));
      x[v] = Entry<Tracked>::stored(at, -1);
      y[v] = Entry<Tracked>::stored(at + static_cast<float>(0.1 * normal(engine)), -1);
    }
    student = log_softmax(x, SoftmaxForm::shifted);
    teacher = log_softmax(y, SoftmaxForm::shifted);
  }

  static constexpr Eigen::Index kVocab = 64;
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
  Row<Tracked> student, teacher;
};

TEST_F(NearlyEqual, HideTheErrorsOfLogProbsThatAreComputedOnce) {
  const auto apart = jensen_shannon(student, teacher, 0.5L),
             once = jensen_shannon_once(student, teacher, 0.5L);
  EXPECT_LT(once.value.err, 0.3 * apart.value.err);
  EXPECT_EQ(once.value.v, apart.value.v);
  for (Eigen::Index v = 0; v < kVocab; ++v) {
    EXPECT_LT(once.slope[v].err, 0.7 * apart.slope[v].err);
  }
  for (const Real end : {0.0L, 1.0L}) {
    EXPECT_EQ(jensen_shannon_once(student, teacher, end).value.err,
              jensen_shannon(student, teacher, end).value.err);
  }
}

TEST_F(NearlyEqual, ShowWhenLogProbsDoNotBelongToTheirProbabilities) {
  // The normaliser beside the probabilities is off, and that of the log-probs is not.
  const Real off = 3 * kThreshold * student[0].err;
  Real value = 0.0L;
  for (Eigen::Index v = 0; v < kVocab; ++v) {
    const Real p = std::exp(student[v].v), q = std::exp(teacher[v].v), m = std::log((p + q) / 2);
    value += (p * (student[v].v + off - m) + q * (teacher[v].v - m)) / 2;
  }
  const auto apart = jensen_shannon(student, teacher, 0.5L),
             once = jensen_shannon_once(student, teacher, 0.5L);
  const auto error = static_cast<double>(std::fabs(value - apart.value.v));
  EXPECT_LE(error, kThreshold * apart.value.err);
  EXPECT_GT(error, kThreshold * once.value.err);
}

TEST_F(NearlyEqual, ReachTheResultAsFarAsTheirErrorsMayMoveIt) {
  const Arithmetic fine = plain_arithmetic(Dtype::f64, "");
  const ArithmeticScope scope(fine);
  constexpr double kErr = 1e-5;  // beside which its roundings are nothing
  constexpr Real kBeta = 0.3L;
  for (const bool of_student : {true, false}) {
    Row<Tracked>&side = of_student ? student : teacher, &other = of_student ? teacher : student;
    for (Tracked& x : side) x.err = kErr;
    for (Tracked& x : other) x.err = 0.0;
    const auto once = jensen_shannon_once(student, teacher, kBeta);
    Row<Real> up(kVocab), p(kVocab), q(kVocab);  // every entry moved to where the value grows
    for (Eigen::Index v = 0; v < kVocab; ++v) {
      const auto by = MixedEntry(student[v].v, teacher[v].v, kBeta).derivatives();
      const Real off = kThreshold * kErr;
      up[v] = (of_student ? by.student : by.teacher) < 0 ? -off : off;
      p[v] = student[v].v + (of_student ? up[v] : 0.0L);
      q[v] = teacher[v].v + (of_student ? 0.0L : up[v]);
    }
    const auto is_most = [](Real moved, const Tracked& bound) {
      const auto share = static_cast<double>(std::fabs(moved - bound.v)) / kThreshold / bound.err;
      return share <= 1.0 && share > 0.95;
    };
    const Divergence<Real> actual = jensen_shannon(p, q, kBeta);
    EXPECT_PRED2(is_most, actual.value, once.value);
    for (Eigen::Index v = 0; v < kVocab; ++v) EXPECT_PRED2(is_most, actual.slope[v], once.slope[v]);
  }
}

TEST_F(NearlyEqual, ReachTheResultWhereTheirErrorsAreBeyondFirstOrder) {
  const Arithmetic fine = plain_arithmetic(Dtype::f64, "");
  const ArithmeticScope scope(fine);
  constexpr Real kBeta = 0.3L;
  std::mt19937_64 engine(2);
  for (const double err : {0.06, 0.2, 0.5, 1.5}) {
    for (Row<Tracked>* side : {&student, &teacher}) {
      for (Tracked& x : *side) x.err = err;
    }
    const auto once = jensen_shannon_once(student, teacher, kBeta);
    const double apart = jensen_shannon(student, teacher, kBeta).value.err;
    EXPECT_LT(once.value.err, err < 1.0 ? 0.8 * apart : 1.01 * apart) << err;
    const auto is_within = [](Real moved, const Tracked& bound) {
      return std::fabs(moved - bound.v) <= kThreshold * bound.err;
    };
    for (int draw = 0; draw < 200; ++draw) {
      const auto moved = [&](const Row<Tracked>& side, int signs) {
        Row<Real> result(kVocab);
        for (Eigen::Index v = 0; v < kVocab; ++v) {
          const bool down = signs == 2 ? engine() % 2 == 0 : signs == 1;
          result[v] = side[v].v + (down ? -kThreshold * err : kThreshold * err);
        }
        return result;
      };
      // Sides apart from each other and alike, and each entry by itself.
      const int of_student = draw < 4 ? draw / 2 : 2, of_teacher = draw < 4 ? draw % 2 : 2;
      const Divergence<Real> actual =
          jensen_shannon(moved(student, of_student), moved(teacher, of_teacher), kBeta);
      EXPECT_PRED2(is_within, actual.value, once.value);
      for (Eigen::Index v = 0; v < kVocab; ++v) {
        EXPECT_PRED2(is_within, actual.slope[v], once.slope[v]);
      }
    }
  }
}

TEST(GapForm, RoundsAtTheSizeOfTheGap) {
  constexpr int kVocab = 61;
  const float low = -5.8317547f, high = 948.9004f;  // of each class alike: the divergence is 0
  float sum_of_gaps = 0.0f;
  for (int v = 0; v < kVocab; ++v) sum_of_gaps += low - high;
  const float z = std::log(static_cast<float>(kVocab));
  const float actual = sum_of_gaps / static_cast<float>(kVocab) - ((low + z) - (high + z));
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  arithmetic.sum.order = SumOrder::sequential;
  const ArithmeticScope scope(arithmetic);
  const auto alike = [&](float x) {
    return softmax<Tracked>(Row<Tracked>::Constant(kVocab, Entry<Tracked>::stored(x, -1)),
                            SoftmaxForm::either);
  };
  const auto p = alike(low), q = alike(high);
  EXPECT_GT(std::fabs(actual), kThreshold * jensen_shannon(p.log_prob, q.log_prob, 1).value.err);
  const Tracked gap = kl_of_gaps(p, q);
  EXPECT_LT(std::fabs(static_cast<double>(gap.v)), 1e-15);
  EXPECT_LE(std::fabs(actual), kThreshold * gap.err);
}

TEST(GapForm, HasTheValueOfTheOther) {
  const auto p = softmax(row_of({1.0L, 2.0L, -1.0L}), SoftmaxForm::shifted),
             q = softmax(row_of({0.5L, -2.0L, 3.0L}), SoftmaxForm::shifted);
  const auto near = [](Real a, Real b) { return std::fabs(a - b) < 1e-15L; };
  EXPECT_PRED2(near, kl_of_gaps(p, q), jensen_shannon(p.log_prob, q.log_prob, 1).value);
  EXPECT_PRED2(near, kl_of_gaps(q, p), jensen_shannon(p.log_prob, q.log_prob, 0).value);
  EXPECT_PRED2(near, cross_entropy_of_logits(q, p),
               soft_cross_entropy(p.log_prob, q.log_prob).value);
}

}  // namespace
}  // namespace lossgate::reference
