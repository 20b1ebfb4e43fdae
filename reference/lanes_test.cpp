// SPDX-License-Identifier: Apache-2.0
// Scalars of several positions at once: what they decide, and what they leave open.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/lanes/positions.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// A scope of plain f32 over no positions in particular.
class LanesTest : public ::testing::Test {
 protected:
  Arithmetic arithmetic = plain_arithmetic(Dtype::f32, "");
  Case c = SmallCases(*find_signature("grpo"), 1).draw(Dtype::f32);
  Problem problem = Problem(*find_signature("grpo"), c);
  Positions positions = Positions(problem);
  LaneScope scope = LaneScope(arithmetic, positions);
  ArithmeticScope exact = ArithmeticScope(arithmetic);
};

Lanes lanes_of(double v, double err, double half = 0.0) {
  return {all_lanes(v), all_lanes(err), all_lanes(std::fabs(v)), all_lanes(half)};
}

TEST_F(LanesTest, AreExactZerosWhereTrackedScalarsAre) {
  for (const double v : {0.0, 1.0}) {
    for (const double err : {0.0, 1.0}) {
      for (const double half : {0.0, 1.0}) {
        const Tracked expected{v, err, v, half};
        EXPECT_EQ(lanes_of(v, err, half).is_exact_zero()[0], expected.is_exact_zero() ? -1 : 0)
            << v << " +- " << err << ", " << half;
      }
    }
  }
}

TEST_F(LanesTest, DoNotTellABranchAtTheEdgeOfItsMargin) {
  const double err = 0x1p-20, bound = kThreshold * err;
  for (const double off : {-0.5, -0x1p-10, -0x1p-15, -0x1p-17, 0.0, 0x1p-17, 0x1p-15, 0.5}) {
    const double margin = bound * (1.0 + off);
    scope.doubt = {};
    const Orders order = compare(lanes_of(margin, err), lanes_of(0.0, 0.0));
    EXPECT_EQ(any(scope.doubt), std::fabs(off) < kFilterSlack) << off;
    const Order expected = compare(Tracked{margin, err, 1.0, 0.0}, Tracked{0.0L, 0.0, 0.0, 0.0});
    if (!any(scope.doubt)) EXPECT_EQ((order == expected)[0], -1) << off;
  }
}

TEST_F(LanesTest, AreInTheOrderOfTheReferenceOrInDoubt) {
  int told = 0;
  for (int a = -3; a <= 3; ++a) {
    for (int b = -3; b <= 3; ++b) {
      for (const double err : {0.0, 0.2, 0.3, 1.0}) {
        for (const double half : {0.0, 0.4}) {
          for (const bool open : {false, true}) {
            arithmetic.ties_open = open;
            scope.doubt = {};
            const Orders order = compare(lanes_of(a, err), lanes_of(b, 0.0, half));
            if (any(scope.doubt)) continue;
            const double x = a, y = b;
            const Order expected =
                compare(Tracked{x, err, std::fabs(x), 0.0}, Tracked{y, 0.0, std::fabs(y), half});
            for (int i = 0; i < kLanes; ++i) EXPECT_EQ((order == expected)[i], -1) << a << " " << b;
            ++told;
          }
        }
      }
    }
  }
  EXPECT_GT(told, 600);
}

TEST_F(LanesTest, DoubtWhatIsNotFiniteAndWhatMayNotFit) {
  const auto doubts = [&](const auto& f) {
    scope.doubt = {};
    f();
    return any(scope.doubt);
  };
  const double largest = max_finite(Dtype::f32);
  const Lanes one = lanes_of(1.0, 0.0);
  EXPECT_FALSE(doubts([&] { compare(lanes_of(1e30, 0.0), one); }));
  for (const double beyond : {largest, 2.0 * largest, HUGE_VAL, std::nan("")}) {
    EXPECT_TRUE(doubts([&] { compare(lanes_of(beyond, 0.0), one); })) << beyond;
    EXPECT_TRUE(doubts([&] { silenced(one, lanes_of(beyond, 0.0)); })) << beyond;
    EXPECT_TRUE(doubts([&] { exp(lanes_of(beyond, 0.0)); })) << beyond;
  }
  const Lanes nearly = lanes_of(0.9 * largest, 0.1 * largest);
  EXPECT_FALSE(doubts([&] { void(one * lanes_of(0.9 * largest, 0.0)); }));
  EXPECT_TRUE(doubts([&] { void(one * lanes_of(2.0 * largest, 0.0)); })) << "logarithms are added";
  EXPECT_TRUE(doubts([&] { void(nearly * one); })) << "logarithms may be added";
  EXPECT_TRUE(doubts([&] { void(one * nearly); })) << "logarithms may be added";
  EXPECT_TRUE(doubts([&] { exp(lanes_of(1.0, 0.06)); })) << "the first-order analysis breaks";
  EXPECT_FALSE(doubts([&] { exp(lanes_of(1.0, 0.04)); }));
  EXPECT_TRUE(doubts([&] { void(one / lanes_of(1.0, 0.06)); }));
  EXPECT_TRUE(doubts([&] { void(one / lanes_of(0.0, 0.0)); }));
  EXPECT_FALSE(doubts([&] { compare(one, one); })) << "a tie of exact numbers is no edge";
  const Lanes zero = lanes_of(0.0, 0.0), far = lanes_of(0.9 * largest, 0.0);
  EXPECT_FALSE(doubts([&] { scaled_by(zero, one, far); }));
  EXPECT_TRUE(doubts([&] { scaled_by(zero, far, far); })) << "a scale that overflows shows";
  EXPECT_FALSE(doubts([&] { begun_with(lanes_of(-0.9 * largest, 0.0), zero); }));
  EXPECT_TRUE(doubts([&] { begun_with(lanes_of(-2.0 * largest, 0.0), zero); })) << "so does this";
}

TEST_F(LanesTest, DoubtAnAnalysisAtTheEdgeOfWhereItBreaks) {
  for (const double slacks : {-1e3, -2.0, -0.5, 0.5, 2.0, 1e3}) {
    const double off = 0.1 + slacks * kFilterSlack;  // of the scale on which each of them bends
    const auto doubts = [&](const auto& f) {
      scope.doubt = {};
      f(lanes_of(1.0, off / kThreshold));
      return any(scope.doubt);
    };
    EXPECT_EQ(doubts([](const Lanes& x) { return exp(x); }), slacks > -1.0) << slacks;
    EXPECT_EQ(doubts([](const Lanes& x) { return expm1(x); }), slacks > -1.0) << slacks;
    EXPECT_EQ(doubts([](const Lanes& x) { return sigmoid(x); }), slacks > -1.0) << slacks;
  }
}

TEST_F(LanesTest, GoBothWaysWhereTheyDifferAndDoubtEachInItsOwn) {
  Lanes x = lanes_of(1.0, 0.0);
  x.v[1] = -1.0;
  const auto sided = [&](double positive, double negative) {
    scope.doubt = {};
    return choose(
        value_of(x) > 0.0, [&] { return exp(lanes_of(positive, 0.0)); },
        [&] { return exp(lanes_of(negative, 0.0)); });
  };
  const Lanes both = sided(1.0, 2.0);
  EXPECT_NEAR(both.v[0], std::exp(1.0), 1e-12);
  EXPECT_NEAR(both.v[1], std::exp(2.0), 1e-12);
  EXPECT_FALSE(any(scope.doubt));
  sided(1.0, 1e6);
  EXPECT_EQ(scope.doubt[0], 0) << "the other lane's doubt";
  EXPECT_EQ(scope.doubt[1], -1);
  scope.live[1] = 0;
  sided(1.0, 1e6);
  EXPECT_FALSE(any(scope.doubt)) << "nobody is there";
}

TEST_F(LanesTest, AddUpTheLanesThatAreLive) {
  Sum<Lanes> sum(16);
  Sum<Tracked> expected(16);
  for (int i = 0; i < 5; ++i) {
    Lanes term = lanes_of(1.0 + i, 0x1p-20, 0x1p-30);
    term.v[1] = -0x1p40;
    scope.live[1] = i < 2 ? -1 : 0;
    sum.add(term);
    for (int lane = 0; lane < (i < 2 ? 2 : 1); ++lane) {
      const double v = term.v[lane];
      expected.add({v, 0x1p-20, 1.0 + i, 0x1p-30});
    }
  }
  const Lanes value = sum.value();
  const Tracked exact_value = expected.value();
  for (int i = 0; i < kLanes; ++i) {
    EXPECT_EQ(value.v[i], static_cast<double>(exact_value.v));
    EXPECT_DOUBLE_EQ(value.err[i], exact_value.err);
    EXPECT_DOUBLE_EQ(value.peak[i], exact_value.peak);
    EXPECT_DOUBLE_EQ(value.half[i], exact_value.half);
  }
}

TEST_F(LanesTest, AddUpWithoutLosingWhatALargeTermSwallows) {
  Sum<Lanes> sum(3);
  for (const double term : {0x1p60, 1.0, -0x1p60}) sum.add(lanes_of(term, 0.0));
  EXPECT_EQ(sum.value().v[0], kLanes);
}

TEST_F(LanesTest, AddUpWithoutLosingWhatTheTotalOfAnotherLaneSwallows) {
  Sum<Lanes> sum(4);
  Lanes term = lanes_of(0x1p53, 0.0);
  term.v = {};
  term.v[0] = 0x1p53, term.v[1] = 1.0;
  sum.add(term);
  term.v[0] = 1.0, term.v[1] = 0.0;
  sum.add(term);
  EXPECT_EQ(sum.value().v[0], 0x1p53 + 2.0);
}

TEST_F(LanesTest, DoubtASumThatOverflowsBeforeItIsScaledHoweverItIsScaled) {
  for (const double factor : {0.5, 1.0, 1.5, 4.0}) {
    for (const double share : {0.2, 0.3, 0.6}) {
      const Lanes part = lanes_of(share * max_finite(Dtype::f32), 0.0);
      scope.doubt = {};
      scaled_sum(lanes_of(factor, 0.0), lanes_of(1.0, 0.0), part, part, -part);
      const double most = 3.0 * share;  // as if all had one sign
      EXPECT_EQ(any(scope.doubt), most > std::min(factor, 1.0)) << factor << ", " << share;
    }
  }
}

TEST_F(LanesTest, DoubtASumThatOverflowsBeforeItIsScaledByWhatOneOfItsTermsLeavesOpen) {
  const double part = 0.2 * max_finite(Dtype::f32);
  for (const double open : {1.0, 3.0}) {
    for (std::size_t of = 0; of < 3; ++of) {
      Lanes parts[] = {lanes_of(part, 0.0), lanes_of(part, 0.0), lanes_of(-part, 0.0)};
      parts[of].half = all_lanes(open * part);
      scope.doubt = {};
      scaled_sum(lanes_of(1.0, 0.0), lanes_of(1.0, 0.0), parts[0], parts[1], parts[2]);
      EXPECT_EQ(any(scope.doubt), open > 2.0) << open << ", " << of;
    }
  }
}

TEST_F(LanesTest, DoubtASumThatOverflowsAtTheEndOfWhatItsTermsLeaveOpen) {
  const double largest = max_finite(Dtype::f32);
  for (const double open : {0.0, 0.05, 0.2}) {
    Sum<Lanes> sum(kLanes);
    sum.add(lanes_of(0.9 * largest / kLanes, 0.0, open * largest / kLanes));
    scope.doubt = {};
    sum.scaled(lanes_of(1.0, 0.0));
    EXPECT_EQ(any(scope.doubt), 0.9 + open > 1.0) << open;
  }
}

TEST_F(LanesTest, DoubtWhatARankMayHoldOfAnAverage) {
  const double largest = max_finite(Dtype::f32);
  const auto doubted = [&](double value, double err, int world) {
    scope.doubt = {};
    averaged_over_parts(lanes_of(value * largest, err * largest), world);
    return any(scope.doubt);
  };
  EXPECT_FALSE(doubted(0.2, 0.0, 4));
  EXPECT_TRUE(doubted(0.3, 0.0, 4));
  EXPECT_FALSE(doubted(0.2, 0.02, 4));
  EXPECT_TRUE(doubted(0.2, 0.03, 4)) << "the error is that of each rank";
}

/// Each lane is what the tracked scalar is, where it is not in doubt.
void expect_as(const Lanes& found, const Tracked& expected) {
  EXPECT_NEAR(found.v[1], static_cast<double>(expected.v), kFilterSlack * expected.err);
  EXPECT_NEAR(found.err[1], expected.err, 1e-9 * expected.err);
  EXPECT_NEAR(found.half[1], expected.half, kFilterSlack * expected.err + 1e-9 * expected.half);
  EXPECT_NEAR(found.peak[1], expected.peak, 1e-9 * expected.peak);
}

TEST_F(LanesTest, ErrAsTrackedScalarsDo) {
  int told = 0;
  const auto compare_on = [&](const Tracked& a, const auto& f) {
    scope.doubt = {};
    const Lanes found = f(lanes_of(static_cast<double>(a.v), a.err, a.half));
    if (any(scope.doubt)) return;
    expect_as(found, f(a));
    ++told;
  };
  for (const double v : {-100.0, -3.0, -0.25, 0.5, 2.0, 60.0}) {
    for (const double err : {0.0, 0x1p-120, 0x1p-20}) {
      for (const double half : {0.0, 0.01}) {
        SCOPED_TRACE(testing::Message() << v << " +- " << err << ", " << half);
        const Tracked a{v, err, std::fabs(v), half};
        compare_on(a, [](const auto& x) { return exp(x); });
        compare_on(a, [](const auto& x) { return expm1(x); });
        compare_on(a, [](const auto& x) { return sigmoid(x); });
        compare_on(a, [](const auto& x) { return x * exp(x); });
        compare_on(a, [](const auto& x) { return x / (x + x); });
        compare_on(a, [](const auto& x) { return exp(x) - x; });
        compare_on(a, [](const auto& x) { return multiplied(x, exp(x)); });
        compare_on(a, [](const auto& x) { return slope_of_half_square(x); });
        compare_on(a, [](const auto& x) { return distributed({x, exp(x)}, x, x); });
        compare_on(a, [](const auto& x) { return distributed({x, x, exp(x)}, x, x); });
      }
    }
  }
  EXPECT_GT(told, 200);
}

TEST_F(LanesTest, AreChargedForAWeightAsTrackedScalarsAre) {
  for (const double half : {0.0, 0.5}) {
    const double far = 0x1p-100;  // below its part, but no underflow
    expect_as(weighted_within(lanes_of(0.25, 0.0), lanes_of(3.0, 0.0, half), lanes_of(far, 0.0)),
              weighted_within(Tracked{0.25L, 0.0, 0.25, 0.0}, Tracked{3.0L, 0.0, 3.0, half},
                              Tracked{far, 0.0, far, 0.0}));
  }
}

TEST_F(LanesTest, ShareTheLargerSquareAsTrackedScalarsDo) {
  int told = 0;
  const double sizes[] = {0.0, 1e-25, 0.5, 1.0, 1.01, 1e18, 1.2e19, 1.5e19, 3e19};
  for (const double a : sizes) {
    for (const double b : sizes) {
      for (const double half : {0.0, 0.3, 3e18}) {
        scope.doubt = {};
        const Lanes found = share_of_larger_square(lanes_of(a, 0.0, half), lanes_of(-b, 0.0, half));
        if (any(scope.doubt)) continue;
        SCOPED_TRACE(testing::Message() << a << " beside " << b << ", " << half);
        expect_as(found,
                  share_of_larger_square(Tracked{a, 0.0, a, half}, Tracked{-b, 0.0, b, half}));
        ++told;
      }
    }
  }
  EXPECT_GT(told, 100);
}

TEST_F(LanesTest, DoubtWhetherASquareUnderflowsAtTheEdge) {
  const double edge = std::sqrt(scope.eta / scope.roundoff);  // of the normal numbers
  for (const double slacks : {-1e3, -2.0, -0.5, 0.0, 0.5, 2.0, 1e3}) {
    scope.doubt = {};
    const double size = edge * (1.0 + slacks * kFilterSlack);
    share_of_larger_square(lanes_of(size, 0.0), lanes_of(0.5 * size, 0.0));
    EXPECT_EQ(any(scope.doubt), std::fabs(slacks) < 1.0) << slacks;
  }
}

TEST_F(LanesTest, AccumulatePartsAsTrackedScalarsDo) {
  for (const int terms : {0, 1, 3}) {
    for (const std::int64_t parts : {1, 2, 5}) {
      Sum<Lanes> sum(8);
      Sum<Tracked> expected(8);
      for (int i = 0; i < terms; ++i) {
        const double term = 0.0625 * (1.0 + i);
        sum.add(lanes_of(term, 0x1p-20));
        for (int lane = 0; lane < kLanes; ++lane) expected.add({term, 0x1p-20, term, 0.0});
      }
      SCOPED_TRACE(testing::Message() << terms << " terms, " << parts << " parts");
      expect_as(sum.accumulated(parts), expected.accumulated(parts));
    }
  }
}

}  // namespace
}  // namespace lossgate::reference
