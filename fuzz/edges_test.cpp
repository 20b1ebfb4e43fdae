// SPDX-License-Identifier: Apache-2.0
#include "fuzz/edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/choices.h"

namespace lossgate::fuzz {
namespace {

constexpr Dtype kFloats[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};

bool has(const EdgeList& edges, double wanted) {
  return std::ranges::find(edges.all(), wanted) != edges.all().end();
}

TEST(Edges, PortableLogIsTheLogarithm) {
  Choices choices(1);
  for (int i = 0; i < 10000; ++i) {
    const double x = choices.log_uniform(0x1p-1000, 0x1p1000);
    EXPECT_NEAR(portable_log(x), std::log(x), 4 * 0x1p-53 * std::max(1.0, std::fabs(std::log(x))));
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
}

TEST(Edges, NeighboursRunThroughTheFormatInOrder) {
  EXPECT_EQ(step_ulps(Dtype::f64, 20.0, 1), std::nextafter(20.0, 21.0));
  EXPECT_EQ(step_ulps(Dtype::f32, -1.0, 1), std::nextafter(-1.0f, 0.0f));
  for (Dtype dtype : kFloats) {
    const double tiny = min_subnormal(dtype);
    EXPECT_EQ(step_ulps(dtype, 0.0, -1), -tiny);
    EXPECT_EQ(step_ulps(dtype, -tiny, 2), tiny);
    EXPECT_EQ(step_ulps(dtype, 1.0, 1), 1.0 + 2.0 * unit_roundoff(dtype));
    EXPECT_EQ(step_ulps(dtype, max_finite(dtype), 1), max_finite(dtype));
  }
}

TEST(Edges, OptionsPutTheirOwnEdgesBesideTheUsualOnes) {
  LossSpec spec;
  spec.set("clip_low", 0.3);
  spec.set("dual_clip", 7.0);
  spec.set("none", None{});
  spec.set("infinite", std::numeric_limits<double>::infinity());
  const EdgeList edges = log_ratio_edges(spec, Dtype::f32);
  const auto f32 = [](double x) { return round_to(Dtype::f32, x); };
  EXPECT_TRUE(has(edges, 20.0));
  EXPECT_TRUE(has(edges, f32(portable_log(0.7))));
  EXPECT_TRUE(has(edges, f32(portable_log(1.3))));
  EXPECT_TRUE(has(edges, f32(portable_log(7.0))));
  EXPECT_TRUE(has(edges, 7.0));
}

TEST(Edges, EveryEdgeIsInTheFormatWithRoomForADifference) {
  for (Dtype dtype : kFloats) {
    LossSpec spec;
    spec.set("bound", max_finite(dtype) / 2);
    for (const EdgeList& edges : {log_ratio_edges(spec, dtype), value_edges(spec, dtype)}) {
      EXPECT_FALSE(edges.all().empty());
      for (double edge : edges.all()) {
        EXPECT_EQ(edge, round_to(dtype, edge));
        EXPECT_LE(std::fabs(edge), max_finite(dtype) / 4);
      }
    }
  }
}

TEST(Edges, SquaresOfValueEdgesFallOnBothSidesOfTheRange) {
  for (Dtype dtype : kFloats) {
    int below = 0, above = 0;
    const EdgeList edges = value_edges({}, dtype);
    for (double edge : edges.all()) {
      // A quotient, since the square of an f64 edge overflows here too.
      (edge <= max_finite(dtype) / std::max(edge, 1.0) ? below : above) += 1;
    }
    EXPECT_GT(below, 0);
    EXPECT_GT(above, 0);
  }
}

TEST(EdgeList, TellsTheEdgesOfACaseFromThoseOfAll) {
  LossSpec spec;
  const EdgeList common = log_ratio_edges(spec, Dtype::f64);
  EXPECT_EQ(common.own().size(), common.all().size()) << "nothing is its own";
  spec.options = {{"clamp", 8.0}, {"off", None{}}};
  const EdgeList edges = log_ratio_edges(spec, Dtype::f64);
  EXPECT_LT(edges.own().size(), edges.all().size());
  EXPECT_EQ(edges.own().front(), 8.0);
  EXPECT_TRUE(std::ranges::count(edges.own(), 10.0)) << "a little beyond";
  EXPECT_FALSE(std::ranges::count(edges.own(), 88.0));
}

}  // namespace
}  // namespace lossgate::fuzz
