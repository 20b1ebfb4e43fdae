// SPDX-License-Identifier: Apache-2.0
#include "fuzz/long_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/acceptance.h"
#include "fuzz/domains/shape.h"
#include "reference/reference.h"
#include "reference/spec/masked.h"

namespace lossgate::fuzz {
namespace {

TEST(DrawLongCase, CountsEveryPositionAndTakesTheLastToken) {
  for (const char* loss : {"cross_entropy", "log_prob", "grpo", "value_clip"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (const Axis axis : long_axes(signature)) {
      const Case c = draw_long_case(1, signature, {axis, Dtype::f32});
      EXPECT_EQ(fault_of(signature, c, Dtype::f32), "") << loss;
      EXPECT_EQ(std::ranges::count(valid_positions(signature, c), false), 0) << loss;
      if (axis != Axis::vocab) continue;
      EXPECT_EQ(c.batch.at("label").integer_at(0), c.shape[Axis::vocab] - 1) << loss;
    }
  }
}

TEST(DrawLongCase, NeedsTheLastTokensOfARowOfLogits) {
  for (const char* loss : {"log_prob", "jsd"}) {
    const LossSignature& signature = *reference::find_signature(loss);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Case c = draw_long_case(seed, signature, {Axis::vocab, Dtype::f32});
      const std::int64_t vocab = c.shape[Axis::vocab];
      for (const Field& field : signature.fields) {
        if (field.quantity != Quantity::logit) continue;
        const Tensor& logits = c.batch.at(field.name);
        for (std::int64_t i = 0; i + 1 < vocab; ++i) {
          ASSERT_LT(logits.at(i), logits.at(vocab - 1)) << loss << " " << seed;
        }
      }
    }
  }
}

TEST(DrawLongCase, IsDividedInTwoAtMost) {
  const LossSignature& signature = *reference::find_signature("value_clip");
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Case c = draw_long_case(seed, signature, {Axis::sequences, Dtype::f32});
    most = std::max(most, c.split.parts.size());
  }
  EXPECT_EQ(most, 2u);
}

TEST(DrawLongCase, SameSeedGivesTheSameCase) {
  const LossSignature& signature = *reference::find_signature("value_clip");
  const auto drawn = [&](std::uint64_t seed, Axis axis) {
    return draw_long_case(seed, signature, {axis, Dtype::f32});
  };
  EXPECT_TRUE(is_same(drawn(1, Axis::tokens), drawn(1, Axis::tokens)));
  EXPECT_FALSE(is_same(drawn(1, Axis::tokens), drawn(2, Axis::tokens)));
  EXPECT_FALSE(is_same(drawn(1, Axis::tokens), drawn(1, Axis::sequences)));
}

TEST(LongAxisOf, KnowsItsOwn) {
  const LossSignature& signature = *reference::find_signature("linear_grpo");
  for (const Axis axis : long_axes(signature)) {
    const Case c = draw_long_case(1, signature, {axis, Dtype::f32});
    EXPECT_EQ(long_axis_of(signature, c.shape), axis);
  }
  Choices choices(1);
  EXPECT_FALSE(long_axis_of(signature, draw_shape(signature, Temper::nasty, choices)));
}

TEST(LengthsOf, DtypesTakeTurns) {
  const LossSignature& signature = *reference::find_signature("cross_entropy");
  constexpr Dtype kTwo[] = {Dtype::f32, Dtype::bf16};
  std::vector<std::pair<Axis, Dtype>> said;
  for (const auto& [axis, dtype] : lengths_of(signature, kTwo)) said.emplace_back(axis, dtype);
  const std::vector<std::pair<Axis, Dtype>> expected = {
      {Axis::sequences, Dtype::f32}, {Axis::tokens, Dtype::bf16}, {Axis::vocab, Dtype::f32}};
  EXPECT_EQ(said, expected);
  EXPECT_TRUE(lengths_of(signature, {}).empty());
}

}  // namespace
}  // namespace lossgate::fuzz
