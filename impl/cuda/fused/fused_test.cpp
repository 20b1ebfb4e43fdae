// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/fused/fused.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "impl/cuda/gpu.h"
#include "reference/spec/dtype.h"

namespace lossgate::impl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// A call of value_clip on two sequences of two tokens, of which the last is masked.
struct ValueCall {
  ValueCall() {
    call.loss = "value_clip";
    call.reduction = "token_mean";
    call.sequences = call.tokens = 2;
    call.total_tokens = 3;
    call.total_sequences = 2;
    call.device = -1;
  }

  int run() {
    call.arrays = arrays.data();
    call.array_count = arrays.size();
    call.options = options.data();
    call.option_count = options.size();
    return lossgate_fused(&call);
  }
  std::string message() {
    EXPECT_EQ(run(), 1);
    return call.message;
  }
  lossgate_fused_array& array(const std::string& name) {
    for (auto& array : arrays) {
      if (array.name == name) return array;
    }
    throw std::out_of_range(name);
  }

  float value[4] = {1, 2, 3, NAN}, old_value[4] = {1, 2, 3, NAN}, target[4] = {0, 0, 1, NAN};
  float loss = NAN, per_token[4] = {}, weighted[4] = {}, gradient[4] = {NAN, NAN, NAN, NAN};
  float upstream = 3;
  std::uint8_t mask[4] = {1, 1, 1, 0};
  std::int64_t row_tokens[2] = {};
  static constexpr auto kF32 = static_cast<std::int32_t>(Dtype::f32);
  std::vector<lossgate_fused_array> arrays = {
      {"value", value, kF32, 2, 1},
      {"old_value", old_value, kF32, 2, 1},
      {"return", target, kF32, 2, 1},
      {"mask", mask, static_cast<std::int32_t>(Dtype::boolean), 2, 1},
      {"loss", &loss, kF32, 0, 0},
      {"per_token", per_token, kF32, 2, 1},
      {"weighted", weighted, kF32, 2, 1},
      {"row_tokens", row_tokens, static_cast<std::int32_t>(Dtype::i64), 1, 1}};
  std::vector<lossgate_fused_option> options = {{"value_clip", nullptr, kNone},
                                                {"clip_form", "around_old", 0}};
  lossgate_fused_call call = {};
};

TEST(Fused, ComputesALossWithoutItsGradient) {
  ValueCall c;
  ASSERT_EQ(c.run(), 0) << c.call.message;
  EXPECT_FLOAT_EQ(c.loss, (0.5f + 2.0f + 2.0f) / 3.0f);
  EXPECT_EQ(c.per_token[3], 0.0f);
  EXPECT_TRUE(std::isnan(c.gradient[0]));  // as it was
}

TEST(Fused, MultipliesTheGradientByTheUpstreamOneWhereItLies) {
  ValueCall c;
  c.arrays.push_back({"gradient.value", c.gradient, ValueCall::kF32, 2, 1});
  ASSERT_EQ(c.run(), 0) << c.call.message;
  EXPECT_FLOAT_EQ(c.gradient[0], 1.0f / 3.0f);
  c.arrays.push_back({"upstream", &c.upstream, ValueCall::kF32, 0, 0});
  ASSERT_EQ(c.run(), 0) << c.call.message;
  EXPECT_FLOAT_EQ(c.gradient[0], 1.0f);
  EXPECT_EQ(c.gradient[3], 0.0f);
}

TEST(Fused, GivesNoNumberWhereTheStepHasNoTokensAndPositionsCount) {
  ValueCall c;
  c.call.total_tokens = 0;
  c.arrays.push_back({"gradient.value", c.gradient, ValueCall::kF32, 2, 1});
  ASSERT_EQ(c.run(), 0) << c.call.message;
  EXPECT_FALSE(std::isfinite(c.loss));
  EXPECT_FALSE(std::isfinite(c.gradient[0]));
}

TEST(Fused, TakesABatchOfNothing) {
  ValueCall c;
  c.call.sequences = c.call.total_tokens = c.call.total_sequences = 0;
  for (auto& array : c.arrays) {
    if (array.data != &c.loss) array.data = nullptr;
  }
  ASSERT_EQ(c.run(), 0) << c.call.message;
  EXPECT_EQ(c.loss, 0.0f);
  c.array("loss").data = nullptr;
  EXPECT_THAT(c.message(), StartsWith("loss has no memory"));
}

TEST(Fused, NamesTheArgumentAtFault) {
  const auto says = [](auto&& change, const char* begin) {
    ValueCall c;
    change(c);
    EXPECT_THAT(c.message(), StartsWith(begin));
  };
  says([](ValueCall& c) { c.call.loss = "loss_of_words"; }, "loss ");
  says([](ValueCall& c) { c.call.loss = nullptr; }, "loss ");
  says([](ValueCall& c) { c.call.reduction = "mean"; }, "reduction ");
  says([](ValueCall& c) { c.call.reduction = "none"; }, "reduction ");
  says(
      [](ValueCall& c) {
        c.call.reduction = "sequence_mean";
        c.call.total_sequences = 0;
      },
      "total_sequences ");
  says([](ValueCall& c) { c.call.sequences = -1; }, "sequences ");
  says([](ValueCall& c) { c.call.sequences = c.call.tokens = std::int64_t{1} << 32; },
       "sequences ");
  says([](ValueCall& c) { c.call.total_tokens = -3; }, "total_tokens ");
  says([](ValueCall& c) { c.options[0].number = -1; }, "value_clip ");
  says([](ValueCall& c) { c.options[1].choice = "round"; }, "clip_form ");
  says([](ValueCall& c) { c.options[1].choice = ""; }, "clip_form ");
  says([](ValueCall& c) { c.array("value").dtype = 0; }, "value ");
  says([](ValueCall& c) { c.array("old_value").dtype = 2; }, "old_value ");
  says([](ValueCall& c) { c.array("return").data = nullptr; }, "return ");
  says([](ValueCall& c) { c.array("old_value").name = "older"; }, "old_value ");
  says([](ValueCall& c) { c.array("mask").dtype = 4; }, "mask ");
  says(
      [](ValueCall& c) {
        c.arrays.push_back({"gradient.value", nullptr, c.kF32, 2, 1});
      },
      "gradient.value has no memory");
  says([](ValueCall& c) { c.options.pop_back(); }, "choice option 'clip_form' ");
  says([](ValueCall& c) { c.call.loss = "jsd"; }, "vocab is 0");
}

TEST(Fused, RefusesADeviceThatItWasNotBuiltForOrThatIsTooOld) {
  ValueCall c;
  c.call.device = 1000;
  EXPECT_THAT(c.message(), StartsWith("device "));
  EXPECT_NO_THROW(require_supported_gpu(8, 0));
  EXPECT_NO_THROW(require_supported_gpu(12, 1));
  try {
    require_supported_gpu(7, 5);
    FAIL();
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.argument, "device");
    EXPECT_THAT(refusal.message, HasSubstr("7.5"));
  }
}

TEST(Fused, CutsAMessageThatIsTooLong) {
  ValueCall c;
  const std::string name(1000, 'x');
  c.options[1].choice = name.c_str();
  EXPECT_EQ(c.message().size(), sizeof c.call.message - 1);
}

TEST(Fused, NamesTheMemoryOfALoss) {
  EXPECT_THAT(lossgate_fused_memory("logits_grpo"), HasSubstr("shift"));
  EXPECT_STREQ(lossgate_fused_memory("grpo"), "");
  EXPECT_EQ(lossgate_fused_memory("loss_of_words"), nullptr);
}

}  // namespace
}  // namespace lossgate::impl
