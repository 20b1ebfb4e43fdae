// SPDX-License-Identifier: Apache-2.0
#include "reference/spec/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lossgate {
namespace {

double growth(SumOrder order, double n, double width = 1.0) {
  return SumRule{.roundoff = 1.0, .order = order, .width = width}.growth(n);
}

/// How many additions each of n terms goes through, from carrying a sum out. A term is a count; an
/// addition raises the counts of all that is in its operands.
using Depths = std::vector<int>;

int deepest(const Depths& depths) { return *std::ranges::max_element(depths); }

int pairwise(int n) {
  if (n <= 1) return 0;
  return 1 + std::max(pairwise(n / 2), pairwise(n - n / 2));
}

/// Running sums that start from their first term, one for each lane, then a tree over the lanes.
int lanes(int n, int width) {
  const int used = std::min(n, width);
  return (n + width - 1) / width - 1 + pairwise(used);
}

int blocked(int n, int width) {
  Depths depths;
  for (int start = 0; start < n; start += width) {
    for (int& depth : depths) ++depth;
    depths.push_back(pairwise(std::min(width, n - start)) + (start > 0 ? 1 : 0));
  }
  return deepest(depths);
}

TEST(SumRule, NothingGrowsWithoutAnAddition) {
  for (SumOrder order : {SumOrder::pairwise, SumOrder::lanes, SumOrder::blocked,
                         SumOrder::sequential, SumOrder::online, SumOrder::unknown}) {
    EXPECT_EQ(growth(order, 0.0, 8.0), 0.0);
    EXPECT_EQ(growth(order, 1.0, 8.0), 0.0);
  }
}

TEST(SumRule, CoversEveryAdditionOfTheSumsThatItNames) {
  for (int n = 2; n <= 300; ++n) {
    EXPECT_EQ(growth(SumOrder::pairwise, n), pairwise(n)) << n;
    EXPECT_EQ(growth(SumOrder::sequential, n), n - 1) << n;
    EXPECT_EQ(growth(SumOrder::unknown, n), n - 1) << n;
    for (int width : {1, 2, 7, 8, 32, 256}) {
      EXPECT_GE(growth(SumOrder::lanes, n, width), lanes(n, width)) << n << ' ' << width;
      EXPECT_LE(growth(SumOrder::lanes, n, width), lanes(n, width) + 1 + std::log2(width) + 1)
          << n << ' ' << width;
      EXPECT_GE(growth(SumOrder::blocked, n, width), blocked(n, width)) << n << ' ' << width;
      EXPECT_LE(growth(SumOrder::blocked, n, width), blocked(n, width) + 1) << n << ' ' << width;
      EXPECT_GE(growth(SumOrder::online, n, width), growth(SumOrder::blocked, n, width));
    }
  }
}

TEST(SumRule, NeverShrinksAsTermsAreAdded) {
  for (SumOrder order : {SumOrder::pairwise, SumOrder::lanes, SumOrder::blocked,
                         SumOrder::sequential, SumOrder::online, SumOrder::unknown}) {
    for (int n = 1; n < 300; ++n) EXPECT_LE(growth(order, n, 8.0), growth(order, n + 1, 8.0));
  }
}

TEST(SumRule, GivesTheFiguresOfTheRules) {
  EXPECT_EQ(growth(SumOrder::pairwise, 32768.0), 15.0);
  EXPECT_EQ(growth(SumOrder::pairwise, 32769.0), 16.0);
  EXPECT_EQ(growth(SumOrder::lanes, 32768.0, 8.0), 4096.0 + 3.0);
  EXPECT_EQ(growth(SumOrder::blocked, 1024.0, 128.0), 8.0 + 7.0);
  EXPECT_EQ(growth(SumOrder::sequential, 1024.0), 1023.0);
}

TEST(PlainArithmetic, HasOneFormatEverywhereAndStoresNothing) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const Arithmetic a = plain_arithmetic(dtype, "expm1");
    EXPECT_EQ(a.compute, dtype);
    EXPECT_EQ(a.roundoff, unit_roundoff(dtype));
    EXPECT_EQ(a.eta, min_subnormal(dtype));
    EXPECT_EQ(a.sum.roundoff, a.roundoff);
    EXPECT_EQ(a.matmul.roundoff, a.roundoff);
    EXPECT_EQ(a.stage(Stage::accumulate).roundoff, a.roundoff);
    for (Stage stage :
         {Stage::logits, Stage::log_prob, Stage::per_token, Stage::loss, Stage::gradient}) {
      EXPECT_EQ(a.stage(stage), Store());
    }
    EXPECT_EQ(a.form, "expm1");
  }
}

TEST(ArithmeticBehindAnUpstreamGradient, ScalesWhatAStoredGradientLosesAndHolds) {
  Arithmetic a = plain_arithmetic(Dtype::f32, "");
  a.stage(Stage::gradient) = {unit_roundoff(Dtype::f16), min_subnormal(Dtype::f16), 65504.0};
  const auto stored = [&](double upstream) { return behind(upstream, a).stage(Stage::gradient); };
  EXPECT_EQ(stored(-65536.0).eta, 65536.0 * min_subnormal(Dtype::f16));
  EXPECT_EQ(stored(-65536.0).largest, 65504.0) << "it is stored behind the scale, too";
  EXPECT_EQ(stored(0.25).eta, min_subnormal(Dtype::f16));
  EXPECT_EQ(stored(0.25).largest, 16376.0) << "for an upstream of 1 it was four times as large";
  for (const double upstream : {0.0, 1.0}) EXPECT_EQ(behind(upstream, a), a);
  EXPECT_EQ(behind(65536.0, plain_arithmetic(Dtype::f16, "")), plain_arithmetic(Dtype::f16, ""));
}

TEST(MathLibrary, ChargesTwiceTheUlpsThatLibrariesDocument) {
  // glibc 2.36, manual, "Known Maximum Errors in Math Functions", x86_64: at most 1 ulp of each in
  // double; sigmoid is an exp, a sum and a quotient; sqrt is rounded correctly.
  const MathLibrary math;
  for (const double factor : {math.exp, math.log, math.log1p, math.expm1, math.tanh}) {
    EXPECT_EQ(factor, 2.0 * 1.0);
  }
  EXPECT_EQ(math.sigmoid, 2.0 * 2.0);
  EXPECT_EQ(math.sqrt, 2.0 * 0.5);
}

TEST(JoinedForms, DeclareEachOfTheirChoicesAndNoPartOfOne) {
  const auto forms = joined_forms({"a, closed", "a"}, {"b", "c"});
  EXPECT_EQ(forms, (std::vector<std::string>{"a, closed with b", "a, closed with c", "a with b",
                                             "a with c"}));
  EXPECT_TRUE(declares(forms[0], "a, closed"));
  EXPECT_TRUE(declares(forms[0], "b"));
  EXPECT_FALSE(declares(forms[0], "a"));
  EXPECT_FALSE(declares(forms[0], "c"));
  EXPECT_TRUE(declares("a", "a"));
  EXPECT_FALSE(declares("", "a"));
}

}  // namespace
}  // namespace lossgate
