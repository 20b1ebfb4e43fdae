// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "fuzz/domains/log_ratio.h"

namespace lossgate::fuzz {
namespace {

/// How many of so many nasty cases have a certain entry, one that rounds to certain, and one that
/// is nearly certain.
struct Counted {
  int certain = 0, rounds = 0, nearly = 0;
};

Counted counted(bool leaves_rest, Dtype dtype) {
  const Field field{.name = "x", .axes = {Axis::sequences}, .leaves_rest = leaves_rest};
  EdgeList edges;
  edges.add(dtype, 20.0);
  Counted result;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Tensor chosen = Tensor::zeros(dtype, {16}), rejected = chosen;
    Column columns[] = {{&field, &chosen}, {&field, &rejected}};
    Choices choices(seed);
    draw_log_probs(columns, edges, Temper::nasty, choices);
    bool certain = false, rounds = false, nearly = false;
    for (std::int64_t i = 0; i < rejected.size(); ++i) {
      const double x = rejected.at(i);
      EXPECT_LE(x, 0.0);
      certain |= x == 0.0;
      rounds |= x < 0.0 && -x < unit_roundoff(dtype);
      nearly |= -x >= unit_roundoff(dtype) && -x < 0.125;
    }
    result.certain += certain, result.rounds += rounds, result.nearly += nearly;
  }
  return result;
}

TEST(NearlyCertain, AreMostOfTheCertainWhereWhatAProbabilityLeavesCounts) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const Counted plain = counted(false, dtype), ends = counted(true, dtype);
    EXPECT_GT(plain.certain, 200) << name(dtype);
    EXPECT_GT(ends.certain, 20) << name(dtype);
    EXPECT_LT(ends.certain, 150) << name(dtype) << ": an infinite term hides all others";
    EXPECT_GT(ends.rounds, 20) << name(dtype);
    EXPECT_GT(ends.nearly, 200) << name(dtype);
  }
}

}  // namespace
}  // namespace lossgate::fuzz
