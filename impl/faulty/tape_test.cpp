// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/tape.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "impl/faulty/tape_functions.h"

namespace lossgate::impl {
namespace {

using V = Var<F64>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// The derivative of f at x, times the upstream gradient.
double slope(const std::function<V(V)>& f, double x, double upstream = 1.0) {
  Tape<F64> tape;
  const V leaf = tape.variable(x);
  tape.backward(f(leaf), upstream);
  return tape.gradient(leaf);
}

/// Both derivatives of f at (x, y).
std::pair<double, double> slopes(const std::function<V(V, V)>& f, double x, double y,
                                 double upstream = 1.0) {
  Tape<F64> tape;
  const V a = tape.variable(x), b = tape.variable(y);
  tape.backward(f(a, b), upstream);
  return {tape.gradient(a), tape.gradient(b)};
}

using Pair = std::pair<double, double>;

TEST(Tape, DifferentiatesArithmetic) {
  EXPECT_EQ(slopes([](V a, V b) { return a + b; }, 3.0, 4.0, 2.0), (Pair{2.0, 2.0}));
  EXPECT_EQ(slopes([](V a, V b) { return a - b; }, 3.0, 4.0, 2.0), (Pair{2.0, -2.0}));
  EXPECT_EQ(slopes([](V a, V b) { return a * b; }, 3.0, 4.0, 2.0), (Pair{8.0, 6.0}));
  EXPECT_EQ(slopes([](V a, V b) { return a / b; }, 3.0, 4.0, 2.0), (Pair{0.5, -0.375}));
  EXPECT_EQ(slope([](V a) { return -a; }, 3.0, 2.0), -2.0);
}

TEST(Tape, DifferentiatesElementaryFunctions) {
  EXPECT_EQ(slope([](V a) { return exp(a); }, 2.0), std::exp(2.0));
  EXPECT_EQ(slope([](V a) { return expm1(a); }, 2.0), std::expm1(2.0) + 1.0);
  EXPECT_EQ(slope([](V a) { return log(a); }, 4.0), 0.25);
  EXPECT_EQ(slope([](V a) { return log1p(a); }, 3.0), 0.25);
  EXPECT_EQ(slope([](V a) { return sigmoid(a); }, 0.0), 0.25);
}

TEST(Tape, DifferentiatesALogarithmOfTwoExponentials) {
  const auto f = [](V a, V b) { return logaddexp(a, b); };
  EXPECT_EQ(slopes(f, 1.0, 1.0, 3.0), (Pair{1.5, 1.5}));
  const auto [small, large] = slopes(f, -2.0, 0.0);
  EXPECT_DOUBLE_EQ(small, 1.0 / (1.0 + std::exp(2.0)));
  EXPECT_DOUBLE_EQ(large, 1.0 / (1.0 + std::exp(-2.0)));
  EXPECT_EQ(slopes(f, -710.0, 0.0), (Pair{0.0, 1.0})) << "exp(710) is infinite";
  EXPECT_EQ(slopes(f, -kInfinity, 0.0), (Pair{0.0, 1.0}));
}

TEST(Tape, AddsTheGradientsOfAllUses) {
  EXPECT_EQ(slope([](V a) { return a * a + a; }, 3.0), 7.0);
}

TEST(Tape, ClampPassesTheGradientOnItsClosedInterval) {
  const auto f = [](V a) { return clamp(a, -1.0, 1.0); };
  EXPECT_EQ(slope(f, 1.0), 1.0);
  EXPECT_EQ(slope(f, -1.0), 1.0);
  EXPECT_EQ(slope(f, 1.5), 0.0);
  EXPECT_EQ(slope(f, kInfinity), 0.0);
  EXPECT_EQ(slope(f, kNan), 0.0);
  EXPECT_EQ(slope(f, 1.5, kNan), 0.0);  // a selection, not a product
}

TEST(Tape, MinimumAndMaximumGiveEachHalfOnATie) {
  EXPECT_EQ(slopes([](V a, V b) { return minimum(a, b); }, 3.0, 3.0), (Pair{0.5, 0.5}));
  EXPECT_EQ(slopes([](V a, V b) { return maximum(a, b); }, 3.0, 3.0), (Pair{0.5, 0.5}));
  EXPECT_EQ(slopes([](V a, V b) { return minimum(a, b); }, 3.0, 4.0), (Pair{1.0, 0.0}));
  EXPECT_EQ(slopes([](V a, V b) { return maximum(a, b); }, 3.0, 4.0), (Pair{0.0, 1.0}));
}

TEST(Tape, MinimumHandsNanOn) {
  Tape<F64> tape;
  const V nan = tape.variable(kNan), one = tape.variable(1.0);
  EXPECT_TRUE(std::isnan(minimum(nan, one).value()));
  EXPECT_TRUE(std::isnan(minimum(one, nan).value()));
  EXPECT_TRUE(std::isnan(maximum(one, nan).value()));
  EXPECT_EQ(slopes([](V a, V b) { return minimum(a, b); }, kNan, 1.0), (Pair{1.0, 1.0}));
}

TEST(Tape, WhereSelectsTheGradient) {
  EXPECT_EQ(slopes([](V a, V b) { return where(true, a, b); }, 3.0, kNan, kNan).second, 0.0);
  EXPECT_EQ(slopes([](V a, V b) { return where(false, a, b); }, 3.0, 4.0), (Pair{0.0, 1.0}));
}

TEST(Tape, NanToNumMultipliesTheGradient) {
  const auto f = [](V a) { return nan_to_num(a); };
  EXPECT_EQ(slope(f, 3.0), 1.0);
  EXPECT_EQ(slope(f, kNan), 0.0);
  EXPECT_EQ(slope(f, kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(slope(f, kNan, kInfinity)));
  Tape<F64> tape;
  EXPECT_EQ(nan_to_num(tape.constant(-kInfinity)).value(), -std::numeric_limits<double>::max());
  EXPECT_EQ(nan_to_num(tape.constant(kNan)).value(), 0.0);
}

// What the whole project is about: each of these is finite forward and NaN backward.

TEST(Tape, MaskAfterAnOverflowingExpLosesTheGradient) {
  const auto f = [](V a) { return where(false, exp(a), a.tape().constant(0.0)); };
  EXPECT_EQ(slope(f, 700.0), 0.0);
  EXPECT_TRUE(std::isnan(slope(f, 710.0)));
}

TEST(Tape, ClampAfterAnOverflowingExpLosesTheGradient) {
  const auto f = [](V a) { return clamp(exp(a), 0.0, 2.0); };
  EXPECT_EQ(slope(f, 700.0), 0.0);
  EXPECT_TRUE(std::isnan(slope(f, 710.0)));
}

TEST(Tape, ClampBeforeExpKeepsTheGradient) {
  EXPECT_EQ(slope([](V a) { return exp(clamp(a, -20.0, 20.0)); }, 710.0), 0.0);
}

TEST(Tape, NanToNumRepairsTheValueAlone) {
  const auto f = [](V a) { return nan_to_num(a * a.tape().constant(kNan)); };
  EXPECT_TRUE(std::isnan(slope(f, 1.0)));
}

TEST(Tape, ASmallerSurrogateLosesTheGradientOfTheOverflowingOne) {
  const auto f = [](V a) { return minimum(exp(a), clamp(exp(a), 0.8, 1.2)); };
  EXPECT_TRUE(std::isnan(slope(f, 710.0)));
}

TEST(Tape, GivesNothingToWhatTookNoPart) {
  Tape<F64> tape;
  const V used = tape.variable(1.0), idle = tape.variable(710.0);
  exp(idle);
  tape.backward(exp(used), 1.0);
  EXPECT_EQ(tape.gradient(idle), 0.0);
}

TEST(Tape, GivesNothingThroughWhatIsDetached) {
  EXPECT_EQ(slope([](V a) { return detach(a) * a; }, 3.0), 3.0);
}

TEST(Tape, SumsNeighboursFirstAndHandsTheGradientToEach) {
  Tape<F32> tape;
  std::vector<Var<F32>> terms = {tape.variable(1.0f), tape.variable(0x1p-24f),
                                 tape.variable(0x1p-24f), tape.variable(0x1p-24f)};
  const auto total = tape.sum(terms);
  EXPECT_EQ(total.value(), 1.0f + 0x1p-23f);
  tape.backward(total, 3.0f);
  for (const auto& term : terms) EXPECT_EQ(tape.gradient(term), 3.0f);
  EXPECT_EQ(tape.sum({}).value(), 0.0f);
}

TEST(Tape, AddsTheGradientsOfExpandedCopies) {
  Tape<F64> tape;
  const V x = tape.variable(2.0);
  const auto copies = tape.expand(x * x, 3);
  tape.backward(tape.sum({copies[0], copies[2], copies[2] * copies[2]}), 1.0);
  EXPECT_EQ(tape.gradient(x), 4.0 * (1.0 + 1.0 + 8.0));
}

TEST(Tape, RoundsEveryResultToItsFormat) {
  Tape<F16> half;
  const auto x = half.variable(11.25f);
  EXPECT_TRUE(std::isinf(exp(x).value()));
  half.backward(exp(half.variable(1.0f)), 1.0f);
  EXPECT_EQ(exp(half.variable(1.0f)).value(),
            static_cast<float>(round_to(Dtype::f16, std::exp(1.0f))));
  Tape<BF16> brain;
  EXPECT_EQ((brain.constant(256.0f) + brain.constant(1.0f)).value(), 256.0f);
  EXPECT_EQ(brain.constant(1.0039f).value(), 1.0f);
}

TEST(Tape, RoundsGradientsToItsFormat) {
  Tape<BF16> tape;
  const auto x = tape.variable(256.0f);
  tape.backward(x * x + x, 1.0f);
  EXPECT_EQ(tape.gradient(x), 512.0f);  // 513 has no place in 8 bits
}

}  // namespace
}  // namespace lossgate::impl
