// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "reference/given_numbers.h"
#include "reference/sums.h"

namespace lossgate::reference {
namespace {

/// f32 on a machine that reads and writes subnormals as 0.
class FlushedSubnormals : public testing::Test {
 protected:
  Arithmetic arithmetic_ = with_subnormals_flushed(plain_arithmetic(Dtype::f32, ""));
  ArithmeticScope scope_{arithmetic_};
};

TEST_F(FlushedSubnormals, AreLostAtEveryOperation) {
  EXPECT_EQ(stored(0x1p-126).err, 0.0);
  EXPECT_EQ(stored(-0x1p-130).err, 0x1p-130);
  EXPECT_EQ(constant<Tracked>(0x1p-130L).err, 0x1p-130);
  EXPECT_GE((stored(0x1p-130) * stored(0x1p100)).err, 0x1p-30);
  EXPECT_GE((stored(0x1.8p-126) - stored(0x1p-126)).err, 0x1p-127);
  Sum<Tracked> sum(3);
  for (const double term : {0x1.8p-126, -0x1p-126, 1.0}) sum.add(stored(term));
  EXPECT_GE(sum.value().err, 0x1p-127);
}

#ifdef __SSE2__
TEST_F(FlushedSubnormals, OfTheHardwareStayWithinWhatIsAllowed) {
  std::mt19937 random(1);
  const auto number = [&](int low, int high) {
    const double fraction = 1.0 + static_cast<double>(random() % 8) / 8.0;
    return static_cast<float>(std::ldexp(random() % 2 == 0 ? fraction : -fraction,
                                         std::uniform_int_distribution(low, high)(random)));
  };
  int lost = 0;
  for (int i = 0; i < 10000; ++i) {
    const float a = number(-130, -120), b = number(-130, -120), c = number(-10, 100);
    volatile float va = a, vb = b, vc = c;
    const unsigned int before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // results and operands
    volatile const float difference = va + vb, product = difference * vc;
    _mm_setcsr(before);
    const Tracked sum = stored(a) + stored(b), whole = sum * stored(c);
    lost += difference == 0.0f && sum.v != 0.0L;
    EXPECT_LE(std::fabs(difference - sum.v), sum.err) << a << " " << b;
    EXPECT_LE(std::fabs(product - whole.v), whole.err) << a << " " << b << " " << c;
  }
  EXPECT_GT(lost, 1000);
}
#endif

}  // namespace
}  // namespace lossgate::reference
