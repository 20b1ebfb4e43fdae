// SPDX-License-Identifier: Apache-2.0
// The ranges of options, spelled out once more: none moves unseen.
#include "reference/losses/options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/given_case.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

struct Range {
  std::string loss, option;
  OptionValue standard;
  double low, high;
};

const std::vector<Range>& ranges() {
  static const std::vector<Range> all = {
      {"grpo", "clip_low", 0.2, 0.0, 0.9},
      {"grpo", "clip_high", 0.2, 0.0, 4.0},
      {"grpo", "dual_clip", None{}, 1.5, 20.0},
      {"grpo", "log_ratio_clamp", 20.0, 1.0, 80.0},
      {"grpo", "kl_penalty", 0.04, 0.0, 1.0},
      {"grpo", "kl_input_clamp", 20.0, 1.0, 80.0},
      {"grpo", "kl_output_clamp", 10.0, 1.0, 1000.0},
      {"grpo", "kl_weighted", 0.0, 0.0, 1.0},
      {"grpo", "max_length", 16.0, 1.0, 1048576.0},
      {"dro", "beta", 0.05, 0.001, 10.0},
      {"cispo", "weight_low", 0.0, 0.0, 1.0},
      {"cispo", "weight_high", 5.0, 1.0, 100.0},
      {"dppo", "divergence_low", 0.2, 0.001, 1.0},
      {"dppo", "divergence_high", 0.2, 0.001, 1.0},
      {"dppo", "epsilon", 1e-8, 0.0, 0.01},
      {"dppo", "weight_high", 20.0, 1.0, 100.0},
      {"sapo", "tau_positive", 1.0, 0.1, 10.0},
      {"sapo", "tau_negative", 1.05, 0.1, 10.0},
      {"vespo", "k_positive", 2.0, 0.0, 5.0},
      {"vespo", "lambda_positive", 3.0, 0.1, 10.0},
      {"vespo", "k_negative", 3.0, 0.0, 5.0},
      {"vespo", "lambda_negative", 2.0, 0.1, 10.0},
      {"gmpo", "clip_low", 0.4, 0.0, 4.0},
      {"gmpo", "clip_high", 0.4, 0.0, 4.0},
      {"value_clip", "value_clip", 0.2, 0.01, 10.0},
      {"dpo", "beta", 0.1, 0.001, 10.0},
      {"dpo", "label_smoothing", 0.0, 0.0, 0.5},
      {"dpo", "margin", 0.0, 0.0, 10.0},
      {"orpo", "beta", 0.1, 0.001, 10.0},
      {"kto", "beta", 0.1, 0.001, 10.0},
      {"kto", "kl", 0.0, 0.0, 100.0},
      {"kto", "desirable_weight", 1.0, 0.0, 10.0},
      {"kto", "undesirable_weight", 1.0, 0.0, 10.0},
      {"entropy_bonus", "coefficient", 0.01, 0.0, 1.0},
      {"cross_entropy", "label_smoothing", 0.0, 0.0, 1.0},
      {"cross_entropy", "z_loss", 0.0, 0.0, 1.0},
      {"cross_entropy", "num_items", 8.0, 1.0, 1048576.0},
      {"dft", "num_items", 8.0, 1.0, 1048576.0},
      {"group_advantage", "epsilon", 1e-6, 1e-9, 0.01},
      {"gae", "gamma", 1.0, 0.0, 1.0},
      {"gae", "lambda", 0.95, 0.0, 1.0},
      {"gae", "epsilon", 1e-8, 1e-9, 0.01},
      {"whitening", "epsilon", 1e-8, 1e-9, 0.01},
      {"jsd", "beta", 0.5, 0.0, 1.0},
      {"jsd", "temperature", 1.0, 0.05, 10.0},
      {"prompt_dedup", "num_generations", 4.0, 1.0, 64.0},
  };
  return all;
}

class EachRange : public testing::TestWithParam<Range> {};

TEST_P(EachRange, IsClosedAndHoldsItsDefault) {
  const Range& range = GetParam();
  const LossSignature& signature = *find_signature(range.loss);
  const Option* option = signature.find_option(range.option);
  ASSERT_TRUE(option);
  EXPECT_EQ(option->standard, range.standard);
  EXPECT_EQ(option->low, range.low);
  EXPECT_EQ(option->high, range.high);
  EXPECT_EQ(standard_spec(signature).is_none(range.option),
            std::holds_alternative<None>(range.standard));
}

INSTANTIATE_TEST_SUITE_P(Options, EachRange, testing::ValuesIn(ranges()), [](const auto& info) {
  return info.param.loss + "_" + info.param.option;
});

TEST(Refusal, NamesTheOptionThatIsOfAnotherKind) {
  for (const char* id : {"grpo", "value_clip", "cross_entropy"}) {
    const Loss& loss = *find_loss(id);
    const Case c = SmallCases(loss.signature, 5).draw(Dtype::f32);
    ASSERT_FALSE(expected_refusal(loss, c));
    for (const Option& option : loss.signature.options) {
      const bool choice = option.kind == Option::Kind::choice;
      Case other = c, none = c;
      other.spec.set(option.name, choice ? OptionValue(1.0) : OptionValue(std::string("one")));
      none.spec.set(option.name, None{});
      const auto refusal = expected_refusal(loss, other);
      ASSERT_TRUE(refusal) << option.name;
      EXPECT_EQ(refusal->argument, option.name);
      EXPECT_EQ(expected_refusal(loss, none).has_value(), !option.nullable) << option.name;
    }
  }
}

TEST(Reach, IsAlongFieldsThatTheLossHas) {
  for (const Loss& loss : catalog()) {
    for (const ReachAxis& axis : loss.signature.reach) {
      EXPECT_TRUE(loss.signature.find_field(axis.field)) << loss.signature.id << axis.field;
      if (axis.towards.empty()) continue;
      EXPECT_TRUE(loss.signature.find_field(axis.towards)) << loss.signature.id << axis.towards;
    }
  }
}

TEST(Options, SayWhatEachChoiceMeans) {
  int choices = 0;
  for (const Loss& loss : catalog()) {
    for (const Option& option : loss.signature.options) {
      for (const std::string& choice : option.choices) {
        EXPECT_NE(option.doc.find(choice + ": "), std::string::npos)
            << loss.signature.id << " " << option.name << " " << choice;
        ++choices;
      }
    }
  }
  EXPECT_GT(choices, 10);
}

TEST(Options, HaveUsualNumbersThatTheyAccept) {
  int numbers = 0;
  for (const Loss& loss : catalog()) {
    for (const Option& option : loss.signature.options) {
      for (const double number : option.usual) {
        EXPECT_GE(number, option.low) << loss.signature.id << " " << option.name;
        EXPECT_LE(number, option.high) << loss.signature.id << " " << option.name;
        EXPECT_NE(OptionValue(number), option.standard) << loss.signature.id << " " << option.name;
        ++numbers;
      }
    }
  }
  EXPECT_GT(numbers, 10);
}

}  // namespace
}  // namespace lossgate::reference
