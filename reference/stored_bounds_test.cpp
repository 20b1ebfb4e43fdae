// SPDX-License-Identifier: Apache-2.0
#include "reference/stored_bounds.h"

#include <gtest/gtest.h>

#include "reference/given_numbers.h"

namespace lossgate::reference {
namespace {

Store store_in(Dtype dtype) {
  return {
      .roundoff = unit_roundoff(dtype), .eta = min_subnormal(dtype), .largest = max_finite(dtype)};
}

TEST(StoredBounds, AreHeldWhereRoundingToTheFormatLeavesThem) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    const double least = min_subnormal(dtype), largest = max_finite(dtype);
    for (const double x : {0.0, 0.3, 1.0, 1.1, 1.5, 19.9, 20.0, 80.0, 256.0, 257.0, 1000.0, 1001.0,
                           least, 1.5 * least, 3.0 * least, largest, 0.999 * largest}) {
      for (const double number : {x, -x}) {
        EXPECT_EQ(holds(store_in(dtype), number), round_to(dtype, number) == number)
            << number << " in " << name(dtype);
      }
    }
  }
  EXPECT_FALSE(holds(store_in(Dtype::f16), 70000.0)) << "it is infinite there";
  EXPECT_TRUE(holds(Store{}, 0.3)) << "nothing is stored";
}

class StoredBound : public TrackedTest {};

TEST_F(StoredBound, IsRoundedByTheStageThatDoesNotHoldIt) {
  arithmetic_.stage(Stage::log_prob) = store_in(Dtype::bf16);
  const Tracked held = constant<Tracked>(20.0), rounded = constant<Tracked>(1.1L);
  EXPECT_EQ(stored_bound(Stage::log_prob, held, 20.0).err, held.err);
  EXPECT_GE(stored_bound(Stage::log_prob, rounded, 1.1).err, 1.1 * unit_roundoff(Dtype::bf16));
  EXPECT_EQ(stored_bound(Stage::logits, rounded, 1.1).err, rounded.err) << "another stage";
}

}  // namespace
}  // namespace lossgate::reference
