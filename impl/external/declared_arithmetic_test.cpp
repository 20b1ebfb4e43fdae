// SPDX-License-Identifier: Apache-2.0
#include "impl/external/declared_arithmetic.h"

#include <gtest/gtest.h>

#include "impl/external/config.h"

namespace lossgate::impl {
namespace {

TEST(DeclaredArithmetic, UnsaidIsPlainInTheFormatOfTheFieldsButForSumsInLanes) {
  for (const Dtype stored : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Arithmetic arithmetic = arithmetic_of({.subnormals_flushed = false}, stored);
    // 4,096 terms in registers of 32 bytes, and the lanes of one among themselves.
    EXPECT_EQ(arithmetic.sum.growth(4096.0), stored == Dtype::f64 ? 1026.0 : 515.0);
    arithmetic.sum = plain_arithmetic(stored, "").sum;
    EXPECT_EQ(arithmetic, plain_arithmetic(stored, ""));
  }
  EXPECT_TRUE(toml_lines({}).empty());
}

TEST(DeclaredArithmetic, StoresAndSumsInTheFormatsThatItNames) {
  const DeclaredArithmetic declared = {.compute = Dtype::f32,
                                       .stages = {{Stage::per_token, Format()}},
                                       .sum = DeclaredSum{SumOrder::lanes, 8.0, Dtype::f16},
                                       .exp_slope = 1.0};
  const Arithmetic arithmetic = arithmetic_of(declared, Dtype::bf16);
  EXPECT_EQ(arithmetic.roundoff, unit_roundoff(Dtype::f32));
  EXPECT_EQ(arithmetic.stage(Stage::per_token).roundoff, unit_roundoff(Dtype::bf16));
  EXPECT_EQ(arithmetic.sum.roundoff, unit_roundoff(Dtype::f16));
  EXPECT_EQ(arithmetic.sum.growth(64.0), 11.0);
  EXPECT_EQ(arithmetic.matmul, plain_arithmetic(Dtype::f32, "").matmul);
  EXPECT_EQ(arithmetic.math.exp_slope, 1.0);
}

TEST(DeclaredArithmetic, MayFlushUnlessItSaysThatItKeepsButInF16) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    EXPECT_EQ(arithmetic_of({}, dtype), arithmetic_of({.subnormals_flushed = true}, dtype));
  }
  EXPECT_EQ(arithmetic_of({}, Dtype::f16),
            arithmetic_of({.subnormals_flushed = false}, Dtype::f16));
  EXPECT_EQ(arithmetic_of({.compute = Dtype::f32}, Dtype::f16).flush, min_normal(Dtype::f32));
}

TEST(DeclaredArithmetic, FlushesToTheSmallestNormalNumber) {
  const Arithmetic kept = arithmetic_of({.subnormals_flushed = false}, Dtype::f32);
  const Arithmetic flushed = arithmetic_of({.subnormals_flushed = true}, Dtype::f32);
  EXPECT_EQ(kept.flush, 0.0);
  EXPECT_EQ(flushed.flush, min_normal(Dtype::f32));
  EXPECT_EQ(flushed.eta, min_normal(Dtype::f32));
  EXPECT_EQ(flushed.stage(Stage::accumulate).eta, min_normal(Dtype::f32));
  EXPECT_EQ(flushed.stage(Stage::gradient), Store{});
}

TEST(DeclaredArithmetic, IsWrittenAsItIsRead) {
  const DeclaredArithmetic declared = {
      .compute = Dtype::f32,
      .form = "short",
      .stages = {{Stage::log_prob, Dtype::bf16}, {Stage::per_token, Format()}},
      .sum = DeclaredSum{SumOrder::sequential, 1.0, {}},
      .matmul = DeclaredSum{SumOrder::blocked, 64.0, Dtype::f16},
      .exp_slope = 1.5,
      .subnormals_flushed = true};
  std::string text = "[[subject]]\nloss = 'toy'\nentry = 'py:a.py:f'\n[subject.arithmetic]\n";
  for (const std::string& line : toml_lines(declared)) text += line + '\n';
  EXPECT_EQ(toml_lines({.subnormals_flushed = false}).front(), "subnormals = \"kept\"");
  const auto subjects = parse_config(text, "lossgate.toml", "/", [](std::string_view) {
    static const LossSignature toy = [] {
      LossSignature loss;
      loss.id = "toy";
      loss.forms = {"stable", "short"};
      return loss;
    }();
    return &toy;
  });
  EXPECT_EQ(subjects.at(0).arithmetic, declared);
}

}  // namespace
}  // namespace lossgate::impl
