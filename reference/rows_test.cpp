// SPDX-License-Identifier: Apache-2.0
#include "reference/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reference/precise.h"
#include "reference/textbook.h"

namespace lossgate::reference {
namespace {

constexpr std::int64_t kVocab = 64;

template <class S>
Row<S> stored_row(const std::vector<double>& logits) {
  Row<S> row(static_cast<Eigen::Index>(logits.size()));
  for (Eigen::Index v = 0; v < row.size(); ++v) {
    row[v] = Entry<S>::stored(logits[static_cast<std::size_t>(v)], -1);
  }
  return row;
}

std::vector<double> logits_around(double offset, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> logits(kVocab);
  for (double& x : logits) x = static_cast<float>(offset + normal(engine));
  return logits;
}

/// The largest error of an f32 log-softmax over a few rows; none may exceed its bound.
double worst_error(double offset, SoftmaxForm form) {
  double worst = 0.0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto logits = logits_around(offset, seed);
    const auto actual = log_softmax(stored_row<Textbook>(logits), form);
    const auto exact = log_softmax(stored_row<Precise>(logits), form);
    const auto bound = log_softmax(stored_row<Tracked>(logits), form);
    for (Eigen::Index v = 0; v < actual.size(); ++v) {
      const auto error = static_cast<double>(distance(Precise(actual[v].v), exact[v]));
      EXPECT_LE(error, kThreshold * bound[v].err);
      worst = std::max(worst, error);
    }
  }
  return worst;
}

class LogSoftmax : public testing::Test {
 protected:
  Arithmetic arithmetic_ = plain_arithmetic(Dtype::f32, "");
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(LogSoftmax, WithoutAShiftLosesWhatTheOffsetOfTheLogitsTakes) {
  // The shifted form does not feel an offset. The other loses the digits of a number of its size
  // [rule B7]; how many more than the first depends on how far apart the logits are: 53 and 957
  // times here.
  EXPECT_LT(worst_error(10000.0, SoftmaxForm::shifted),
            2.0 * worst_error(0.0, SoftmaxForm::shifted));
  EXPECT_GT(worst_error(1000.0, SoftmaxForm::by_logsumexp),
            16.0 * worst_error(1000.0, SoftmaxForm::shifted));
  EXPECT_GT(worst_error(10000.0, SoftmaxForm::by_logsumexp),
            261.0 * worst_error(10000.0, SoftmaxForm::shifted));
}

TEST_F(LogSoftmax, SpoilsImpossibleTokensWhereTheRowOverflows) {
  constexpr double kInfinity = tracking::kInfinity;
  const auto gradient = [&](double largest) {
    const auto l =
        log_softmax(stored_row<Tracked>({-kInfinity, largest, 0.0}), SoftmaxForm::shifted);
    return log_softmax_gradient(l, stored_row<Tracked>({0.0, 1.0, 0.0}), false)[0];
  };
  EXPECT_TRUE(gradient(1e4).is_exact_zero());
  // A logit beyond f32 is an infinity there: infinity less infinity, for every token of the row.
  EXPECT_GT(gradient(1e39).peak, max_finite(Dtype::f32));
  EXPECT_EQ(gradient(1e39).v, 0.0L);
}

TEST_F(LogSoftmax, OfARowThatOverflowsIsUndefined) {
  const auto undefined = [&](std::vector<double> logits) {
    const auto l = log_softmax(stored_row<Tracked>(logits), SoftmaxForm::shifted);
    return tracking::undefined(exp(l[0])) && silenced(Tracked{}, exp(l[0])).peak > 0.0;
  };
  EXPECT_TRUE(undefined({4e38}));
  EXPECT_TRUE(undefined({0.0, 4e38}));
  EXPECT_FALSE(undefined({3e38, 3e38}));
  EXPECT_TRUE(undefined({-4e38}));
  EXPECT_TRUE(undefined({-5e38, -4e38}));
  // Downwards one alone is an impossible token.
  EXPECT_FALSE(undefined({0.0, -4e38}));
  EXPECT_FALSE(undefined({-4e38, 0.0}));
  EXPECT_FALSE(undefined({0.0, -tracking::kInfinity}));
}

/// A gradient of a few errors, charged for the shift of a row.
Row<Tracked> charged(const std::vector<Tracked>& row, const std::vector<Tracked>& gradient) {
  Row<Tracked> x(std::ssize(row)), g(std::ssize(gradient));
  std::ranges::copy(row, x.begin());
  std::ranges::copy(gradient, g.begin());
  charge_shift(x, g);
  return g;
}

TEST_F(LogSoftmax, ChargesTheLargestForAShiftThatIsNotDetached) {
  const Tracked plain{0.0L, 0.0, 0.0, 0.0}, one{1.0L, 0.0, 1.0, 0.0};
  const std::vector<Tracked> gradient = {
      {2.0L, 0.25, 8.0, 0.0}, {-1.0L, 0.5, 2.0, 0.125}, {-1.0L, 0.0, 1.0, 0.0}};
  const auto g = charged({plain, one, plain}, gradient);
  EXPECT_EQ(g[0].err, 0.25);
  EXPECT_EQ(g[0].half, 0.0);
  EXPECT_EQ(g[2].err, 0.0);
  EXPECT_EQ(g[2].peak, 1.0);
  EXPECT_EQ(g[1].v, -1.0L);
  // Its own, and those of all, and of their sum.
  EXPECT_GT(g[1].err, 0.5 + 0.75);
  EXPECT_LT(g[1].err, 0.5 + 0.75 + 1e-5);
  EXPECT_EQ(g[1].half, 0.125 + 0.125);
  EXPECT_EQ(g[1].peak, 8.0);
}

TEST_F(LogSoftmax, ChargesAllThatMayBeTheLargest) {
  const Tracked plain{1.0L, 0.0, 1.0, 0.0}, rounded{0.5L, 0.25, 0.5, 0.0},
      open{0.75L, 0.0, 0.75, 0.25}, less{0.5L, 0.2, 0.5, 0.0};
  const std::vector<Tracked> gradient(4, Tracked{0.0L, 1.0, 0.0, 0.0});
  const auto g = charged({plain, rounded, open, less}, gradient);
  EXPECT_NEAR(g[0].err, 5.0, 1e-6);
  EXPECT_NEAR(g[1].err, 5.0, 1e-6) << "T times its error away";
  EXPECT_NEAR(g[2].err, 5.0, 1e-6) << "half its width away";
  EXPECT_EQ(g[3].err, 1.0);
  const auto of_one = charged({rounded, less}, {gradient[0], gradient[1]});
  EXPECT_NEAR(of_one[1].err, 3.0, 1e-6) << "the largest may be less than it is";
}

TEST_F(LogSoftmax, ThatMayBeOfEitherFormIsChargedAsTheWider) {
  // The shifted form rounds the distance twice; the other once, and what the offset makes large.
  for (const double offset : {1.0, 1e3}) {
    const auto l = [&](SoftmaxForm form) {
      return log_softmax(stored_row<Tracked>({offset, offset - 80.0}), form)[1].err;
    };
    const double shifted = l(SoftmaxForm::shifted), plain = l(SoftmaxForm::by_logsumexp);
    EXPECT_EQ(shifted > plain, offset == 1.0);
    EXPECT_EQ(l(SoftmaxForm::either), std::max(shifted, plain));
  }
}

TEST_F(LogSoftmax, LosesAShareThatABackwardMakesOfOneBeyondTheRange) {
  const auto lost = [](double gap, double err) {
    const Tracked e{std::exp(static_cast<Real>(-gap)), err, 1.0, 0.0};
    return (share_of_joined(e).err - err) / static_cast<double>(e.v);
  };
  EXPECT_NEAR(lost(88.8, 0.0), 1.0, 1e-9) << "exp(88.8) is infinite in f32";
  EXPECT_EQ(lost(88.6, 0.0), 0.0);
  EXPECT_GT(lost(88.6, 1e-39), 0.9) << "by its error";
  EXPECT_EQ(lost(0.0, 0.0), 0.0);
  const auto slope_of_first = [](bool joined) {
    const auto l = log_softmax(stored_row<Tracked>({-90.0, 0.0}), SoftmaxForm::shifted);
    return log_softmax_gradient(l, stored_row<Tracked>({0.0, 1.0}), joined)[0];
  };
  EXPECT_LT(slope_of_first(false).err, 1e-3 * std::exp(-90.0));
  EXPECT_NEAR(slope_of_first(true).err, std::exp(-90.0), 1e-3 * std::exp(-90.0));
}

TEST_F(LogSoftmax, TakesAShiftForTheNumberThatItIs) {
  const Tracked shift = as_shift({3.0L, 0.5, 7.0, 0.25});
  EXPECT_EQ(shift.v, 3.0L);
  EXPECT_EQ(shift.err, 0.0);
  EXPECT_EQ(shift.peak, 3.0 + kThreshold * 0.5 + 0.25) << "of 7 it knows nothing";
  EXPECT_EQ(shift.half, 0.0);
  // An infinity that only double makes of a Real is no exact number.
  EXPECT_EQ(as_shift({1e4000L, 1.0, tracking::kInfinity, 0.0}).err, 1.0);
  EXPECT_TRUE(tracking::is_stored_infinity(as_shift(Entry<Tracked>::stored(HUGE_VAL, -1))));
}

TEST(LogSumExp, RoundsAtItsSizeAtEveryJoinOfTiles) {
  constexpr int kTile = 3;
  Arithmetic online = plain_arithmetic(Dtype::f32, "");
  online.sum.order = SumOrder::online;
  online.sum.width = kTile;
  double worst = 0.0, worst_of_one = 0.0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto logits = logits_around(1e4, seed);
    float joined = -INFINITY;  // as torch.logaddexp joins what logsumexp leaves of each tile
    for (std::size_t first = 0; first < logits.size(); first += kTile) {
      const std::size_t last = std::min(first + kTile, logits.size());
      double sum = 0.0, most = *std::max_element(&logits[first], &logits[first] + (last - first));
      for (std::size_t v = first; v < last; ++v) sum += std::exp(logits[v] - most);
      const double tile = static_cast<float>(most + std::log(sum));
      const double larger = std::max<double>(joined, tile), less = std::min<double>(joined, tile);
      joined = static_cast<float>(larger + std::log1p(std::exp(less - larger)));
    }
    const ArithmeticScope scope(online);
    const auto exact = stored(log_sum_exp(stored_row<Precise>(logits)));
    const double error = static_cast<double>(distance(Precise(joined), exact));
    worst = std::max(worst, error / stored(log_sum_exp(stored_row<Tracked>(logits))).err);
    const Arithmetic plain = plain_arithmetic(Dtype::f32, "");
    const ArithmeticScope pairwise(plain);
    worst_of_one =
        std::max(worst_of_one, error / stored(log_sum_exp(stored_row<Tracked>(logits))).err);
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_GT(worst_of_one, kThreshold) << "one rounding is too few";
}

}  // namespace
}  // namespace lossgate::reference
