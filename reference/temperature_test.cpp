// SPDX-License-Identifier: Apache-2.0
#include "reference/temperature.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_numbers.h"
#include "reference/products.h"

namespace lossgate::reference {
namespace {

class Temperature : public TrackedTest {
 protected:
  Temperature() {
    arithmetic_.stage(Stage::logits) = {.roundoff = unit_roundoff(Dtype::f16),
                                        .eta = min_subnormal(Dtype::f16),
                                        .largest = max_finite(Dtype::f16)};
  }
};

bool within(double found, const Tracked& x) {
  return std::fabs(found - static_cast<double>(x.v)) <= kThreshold * x.err;
}

TEST_F(Temperature, MayDivideALogitThatHasLostItsLastDigits) {
  const float logit = 1e-7F, cold = 0.05F;  // two of the smallest numbers of f16, nearly
  const double before = round_to(Dtype::f16, logit) / cold,
               after = round_to(Dtype::f16, logit / cold);
  EXPECT_FALSE(within(before, store(Stage::logits, stored(logit) / stored(cold))));
  const Tracked x = over_temperature(stored(logit), stored(cold));
  EXPECT_TRUE(within(before, x));
  EXPECT_TRUE(within(after, x));
  EXPECT_FALSE(within(2.0 / cold * 1.01, over_temperature(stored(2.0), stored(cold))));
}

TEST_F(Temperature, MakesALogitFitThatWasInfiniteWhereItWasStored) {
  EXPECT_GT(over_temperature(stored(70000.0), stored(10.0)).peak, max_finite(Dtype::f32));
  EXPECT_LT(over_temperature(stored(60000.0), stored(10.0)).peak, max_finite(Dtype::f32));
  EXPECT_GT(over_temperature(stored(60000.0), stored(0.5)).peak, max_finite(Dtype::f32));
}

TEST_F(Temperature, RoundsNothingMoreWhereNothingIsStored) {
  const Tracked x = stored(3.0), t = stored(0.7F), half = stored(0.5);
  EXPECT_EQ(over_temperature(x, stored(1.0)).err, store(Stage::logits, x).err);
  change();
  EXPECT_EQ(over_temperature(x, t).err, (x / t).err);
  EXPECT_EQ(over_temperature(x, stored(1.0)).err, 0.0);
  EXPECT_EQ(back_to_logits(half, t, stored(1.0)).err,
            through_temperature(half, t, stored(1.0)).err);
}

TEST_F(Temperature, DividesAGradientBeforeItHasTheFormatOfTheLogits) {
  const float slope = 6e-7F,
              warm = 20.0F;  // over the temperature half of the smallest number of f16
  const double found = round_to(Dtype::f16, slope / warm);
  const Tracked one = stored(1.0), g = stored(slope), t = stored(warm);
  EXPECT_FALSE(within(found, through_temperature(g, t, one)));
  EXPECT_TRUE(within(found, back_to_logits(g, t, one)));
  EXPECT_FALSE(within(0.051, back_to_logits(one, t, one))) << "another temperature";
}

}  // namespace
}  // namespace lossgate::reference
