// SPDX-License-Identifier: Apache-2.0
#include "ci/recognition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/candidates.h"
#include "ci/fake_function.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

double number(const Recognition& recognition, const std::string& option) {
  const OptionValue* value = find_value(recognition.subject.options, option);
  const double* number = value ? std::get_if<double>(value) : nullptr;
  return number ? *number : std::nan("");
}

bool is_none(const Recognition& recognition, const std::string& option) {
  const OptionValue* value = find_value(recognition.subject.options, option);
  return value && std::holds_alternative<None>(*value);
}

/// PPO as most write it: no KL, no clamps, clip distances as arguments.
FakeFunction ppo() {
  FakeFunction function("grpo");
  function.without("ref_log_prob").only(Reduction::token_mean);
  for (const Option& option : function.loss.signature.options) {
    if (option.name.starts_with("clip")) continue;
    function.with(option.name, option.nullable ? OptionValue(None{}) : option.standard);
  }
  set_value(function.constants, "kl_penalty", 0.0);
  return function;
}

TEST(Recognition, NamesALossThatIsToldEverything) {
  const Recognition found = FakeFunction("grpo").recognised(false);
  EXPECT_THAT(found.subject.reductions,
              ElementsAre(Reduction::token_mean, Reduction::sequence_mean,
                          Reduction::seq_mean_token_sum_norm, Reduction::sum));
  EXPECT_THAT(found.subject.options, IsEmpty());
  EXPECT_THAT(found.remarks, IsEmpty());
  EXPECT_EQ(found.subject.contract.empty_rows, EmptyRows::skipped);
}

TEST(Recognition, NeedsNoFieldThatACallerMayHaveNoneOf) {
  FakeFunction plain("linear_cross_entropy");
  plain.without("bias");
  plain.before = [](Case& c) {
    Tensor& bias = c.batch.at("bias");
    for (std::int64_t v = 0; v < bias.size(); ++v) bias.set(v, 0.0);
  };
  const Recognition found = plain.recognised(false);
  EXPECT_THAT(found.remarks, ElementsAre("right only where there is no bias"));
  EXPECT_FALSE(found.subject.reductions.empty());
}

TEST(Recognition, FindsWhatIsWrittenIntoAFunction) {
  const Recognition found = ppo().recognised(false);
  EXPECT_THAT(found.subject.reductions, ElementsAre(Reduction::token_mean));
  EXPECT_EQ(number(found, "kl_penalty"), 0.0);
  EXPECT_TRUE(is_none(found, "dual_clip"));
  EXPECT_TRUE(is_none(found, "log_ratio_clamp"));
  EXPECT_EQ(find_value(found.subject.options, "clip_low"), nullptr) << "it is told";
  EXPECT_EQ(find_value(found.subject.options, "max_length"), nullptr) << "token_mean reads none";
  EXPECT_EQ(find_value(found.likeness.candidate.options, "max_length"), nullptr);
  FakeFunction penalised = ppo().with("kl_penalty", 0.04);
  penalised.fields.push_back("ref_log_prob");
  EXPECT_TRUE(is_none(penalised.recognised(false), "kl_input_clamp"));
  EXPECT_EQ(number(ppo().with("log_ratio_clamp", 20.0).recognised(false), "log_ratio_clamp"), 20.0);
}

TEST(Recognition, FindsNumbersThatNobodyWouldGuess) {
  const Recognition found =
      ppo().with("clip_low", 0.13).with("clip_high", 0.37).with("dual_clip", 4.2).recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(number(found, "clip_low"), 0.13);
  EXPECT_EQ(number(found, "clip_high"), 0.37);
  EXPECT_EQ(number(ppo().with("log_ratio_clamp", 11.0).recognised(), "log_ratio_clamp"), 11.0);
  FakeFunction norm("sapo");
  EXPECT_EQ(number(norm.with("max_length", 37.0).recognised(), "max_length"), 37.0);
  FakeFunction reverse("jsd");
  reverse.with("beta", 1.0).with("temperature", 1.0).only(Reduction::token_mean);
  EXPECT_EQ(number(reverse.recognised(), "beta"), 1.0);
}

TEST(Recognition, FindsUsualNumbersThatMakeUpForEachOther) {
  for (const double dual_clip : {3.0, 10.0}) {
    const Recognition found = ppo()
                                  .with("clip_low", 0.2)
                                  .with("clip_high", 0.28)
                                  .with("dual_clip", dual_clip)
                                  .with("log_ratio_clamp", 20.0)
                                  .recognised(false);
    EXPECT_TRUE(found.whole()) << dual_clip;
    EXPECT_EQ(number(found, "clip_low"), 0.2);
    EXPECT_EQ(number(found, "clip_high"), 0.28);
    EXPECT_EQ(number(found, "dual_clip"), dual_clip);
    EXPECT_EQ(number(found, "log_ratio_clamp"), 20.0);
  }
}

struct Near {
  std::string what;
  FakeFunction function;
  std::string said;  ///< in a remark, or empty
  double factor = 0.0;
};

std::vector<Near> near_misses() {
  std::vector<Near> all;
  const auto told = [](auto change) {
    FakeFunction function("grpo");
    function.before = change;
    return function;
  };
  const auto raise = [](const std::string& option, double factor) {
    return [=](Case& c) { c.spec.set(option, c.spec.number(option) * factor); };
  };
  all.push_back({"half of the KL", told(raise("kl_penalty", 0.5)),
                 "told kl_penalty 0.04, it computes what kl_penalty 0.02 gives"});
  all.push_back({"clips at 1 + 2 eps", told(raise("clip_high", 2.0)),
                 "told clip_high 0.2, it computes what clip_high 0.4 gives"});
  all.push_back({"another reduction", told([](Case& c) {
                   const bool mean = c.spec.reduction == Reduction::token_mean;
                   c.spec.reduction = mean ? Reduction::sequence_mean : Reduction::token_mean;
                 }),
                 "it computes"});
  all.push_back({"the other sign of A", ppo(), "", -1.0});
  all.back().function.after = [](const Case&, LossResult& result) { scale(result, -1.0); };
  all.push_back({"twice the loss", ppo(), "", 2.0});
  all.back().function.after = [](const Case&, LossResult& result) { scale(result, 2.0); };
  all.push_back({"the reference for the old policy",
                 told([](Case& c) { c.batch.at("old_log_prob") = c.batch.at("ref_log_prob"); }),
                 ""});
  all.push_back({"a gradient through nothing", ppo(), ""});
  all.back().function.after = [](const Case&, LossResult& result) {
    for (Output& output : result.outputs) {
      if (output.name != "loss")
        output.tensor = Tensor::zeros(output.tensor.dtype, output.tensor.extents);
    }
  };
  all.push_back({"a thousandth too much", ppo(), "", 1.001});
  all.back().function.after = [](const Case&, LossResult& result) { scale(result, 1.001); };
  FakeFunction likelihood("cispo");
  likelihood.without("advantage");
  likelihood.before = [](Case& c) {
    Tensor& advantage = c.batch.at("advantage");
    for (std::int64_t i = 0; i < advantage.size(); ++i) advantage.set(i, 1.0);
  };
  all.push_back({"no advantages", likelihood, "it does not take advantage"});
  return all;
}

TEST(Recognition, NamesALossOfWhichTheFunctionNeedsFewerFields) {
  FakeFunction reward_model("dpo");
  reward_model.without("ref_chosen_log_prob").without("ref_rejected_log_prob");
  reward_model.before = [](Case& c) {
    for (const char* name : {"ref_chosen_log_prob", "ref_rejected_log_prob"}) {
      Tensor& field = c.batch.at(name);
      field = Tensor::zeros(field.dtype, field.extents);
    }
  };
  const Recognition pairs = reward_model.recognised();
  EXPECT_TRUE(pairs.whole());
  EXPECT_THAT(pairs.remarks, Contains(HasSubstr("where there is no ref_chosen_log_prob")));
  FakeFunction critic("value_clip");
  critic.without("old_value").with("value_clip", None{});
  EXPECT_TRUE(critic.recognised().whole()) << "no clip, and so no old value";
  FakeFunction one_step("cispo");
  one_step.without("old_log_prob").with("weight_low", 1.0).with("weight_high", 1.0);
  const Recognition on_policy = one_step.recognised();
  EXPECT_TRUE(on_policy.whole());
  EXPECT_THAT(on_policy.remarks, Contains("right only where old_log_prob is log_prob itself"));
  FakeFunction plain("reinforce");
  plain.without("importance_weight");
  const Recognition unweighted = plain.recognised();
  EXPECT_TRUE(unweighted.whole());
  EXPECT_THAT(unweighted.remarks, Contains("right only where importance_weight is 1"));
}

TEST(Recognition, NeverNamesALossThatIsOnlyNear) {
  for (Near& near : near_misses()) {
    const Recognition found = near.function.recognised();
    EXPECT_FALSE(found.whole()) << near.what;
    if (!near.said.empty()) {
      EXPECT_THAT(found.remarks, Contains(HasSubstr(near.said))) << near.what;
    }
    EXPECT_NEAR(found.likeness.factor, near.factor, 1e-9) << near.what;
  }
}

TEST(Recognition, IsNotFooledByAnotherLossOfTheSameArguments) {
  FakeFunction gate("sapo");
  gate.told.clear();
  gate.with("tau_positive", 1.0).with("tau_negative", 1.05).with("log_ratio_clamp", 20.0);
  impl::Subject subject;
  EXPECT_FALSE(recognise(gate, *reference::find_loss("cispo"), subject, true).whole());
  EXPECT_FALSE(recognise(gate, *reference::find_loss("grpo"), subject, true).whole());
  EXPECT_TRUE(recognise(gate, *reference::find_loss("sapo"), subject, true).whole());
}

TEST(Recognition, KeepsWhatIsRightAtOneValueOnly) {
  FakeFunction one_epsilon("grpo");  // for both sides
  one_epsilon.told = {"clip_low"};
  one_epsilon.before = [](Case& c) { c.spec.set("clip_high", *c.spec.find("clip_low")); };
  Recognition found = one_epsilon.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(number(found, "clip_low"), 0.2);
  EXPECT_EQ(number(found, "clip_high"), 0.2);
  EXPECT_THAT(found.remarks, Contains("right only where clip_low is 0.2"));
  EXPECT_THAT(found.faults, IsEmpty()) << "it stands for both";

  FakeFunction ceiling("grpo");  // a dual clip that also holds below the clip, where they cross
  ceiling.before = [](Case& c) {
    if (c.spec.is_none("dual_clip")) return;
    const double most = c.spec.number("dual_clip") - 1.0;
    c.spec.set("clip_high", std::min(c.spec.number("clip_high"), most));
  };
  found = ceiling.recognised();
  EXPECT_TRUE(is_none(found, "dual_clip"));
  EXPECT_THAT(found.faults, IsEmpty()) << "alone each is right";
  EXPECT_THAT(found.remarks, Contains(HasSubstr("values where clip_high = 0.2 stands in its")));
  EXPECT_EQ(find_value(found.subject.options, "clip_high"), nullptr);
}

TEST(Recognition, FindsOptionsThatAreExchanged) {
  FakeFunction swapped = ppo();
  swapped.before = [then = swapped.before](Case& c) {
    then(c);
    const double low = c.spec.number("clip_low");
    c.spec.set("clip_low", *c.spec.find("clip_high"));
    c.spec.set("clip_high", low);
  };
  swapped.defaults = {{"clip_low", 0.2}, {"clip_high", 0.28}};
  const Recognition found = swapped.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(found.faults,
              ElementsAre("clip_low and clip_high are exchanged: it takes clip_low for clip_high "
                          "and clip_high for clip_low; whoever leaves them at its own defaults of "
                          "0.2 and 0.28 gets another formula"));
  EXPECT_EQ(find_value(found.subject.options, "clip_low"), nullptr) << "a gate is to see it";
  EXPECT_EQ(find_value(found.subject.options, "clip_high"), nullptr);
}

TEST(Recognition, TakesNoOptionThatIsIgnoredForAnExchangedOne) {
  FakeFunction one_for_both = ppo();
  one_for_both.before = [then = one_for_both.before](Case& c) {
    then(c);
    c.spec.set("clip_high", *c.spec.find("clip_low"));
  };
  const Recognition found = one_for_both.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(found.faults, Not(Contains(HasSubstr("exchanged"))));
  EXPECT_THAT(
      found.faults,
      ElementsAre("clip_low is a parameter, and any other value than 0.2 is another formula",
                  "clip_high is a parameter, and any other value than 0.2 is another "
                  "formula"));
}

TEST(Recognition, LeavesFreeWhatOneParameterStandsFor) {
  const Recognition found = ppo().tie("clip_high", "clip_low").recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(find_value(found.subject.options, "clip_low"), nullptr);
  EXPECT_EQ(find_value(found.subject.options, "clip_high"), nullptr);
  // Its name says that it stands for both, and the other number is written into it.
  const Recognition apart = ppo().tie("clip_high", "clip_low").with("clip_high", 0.28).recognised();
  EXPECT_TRUE(apart.whole());
  EXPECT_EQ(find_value(apart.subject.options, "clip_low"), nullptr);
  EXPECT_EQ(number(apart, "clip_high"), 0.28);
}

TEST(Recognition, SaysThatTheLossIsRightAndItsGradientsAreNot) {
  FakeFunction attached("cispo");  // the weight is not detached, say
  attached.after = [](const Case&, LossResult& result) {
    for (Output& output : result.outputs) {
      if (!output.name.starts_with("gradient.")) continue;
      for (std::int64_t i = 0; i < output.tensor.size(); i += 2) output.tensor.set(i, 0.25);
    }
  };
  const Recognition found = attached.recognised();
  EXPECT_FALSE(found.whole());
  EXPECT_THAT(found.remarks, Contains("the loss is right on all cases, its gradients are not"));
}

TEST(Recognition, TellsAnotherValueWhereTheDefaultIsRefused) {
  FakeFunction strict("grpo");
  strict.before = [](Case& c) {
    if (c.spec.is_none("dual_clip")) throw Refusal{"dual_clip", -1, -1, "TypeError: None"};
  };
  const Recognition found = strict.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(*find_value(found.subject.options, "dual_clip"), OptionValue(impl::kAnyNumber));
  EXPECT_THAT(found.remarks, ElementsAre("right only where dual_clip is a number"));
}

TEST(Recognition, NamesNoOddNumberOfWhatIsOnlyNear) {
  FakeFunction by_vocabulary("jsd");  // torch's kl_div with reduction="mean"
  by_vocabulary.with("beta", 0.0).with("temperature", 1.0).with("soft_cross_entropy", 0.0);
  by_vocabulary.with("num_items", 8.0).only(Reduction::token_mean);
  by_vocabulary.after = [](const Case& c, LossResult& result) {
    scale(result, 1.0 / static_cast<double>(c.shape[Axis::vocab]));
  };
  const Recognition found = by_vocabulary.recognised();
  EXPECT_FALSE(found.whole());
  const OptionValue* beta = find_value(found.likeness.candidate.options, "beta");
  ASSERT_NE(beta, nullptr);
  EXPECT_THAT(report::option_text(*beta), AnyOf("0", "0.5", "1"));
}

TEST(Recognition, NamesTheReductionsThatAreRight) {
  FakeFunction two("grpo");
  two.before = [](Case& c) {
    if (c.spec.reduction == Reduction::sum) throw Refusal{"", -1, -1, "KeyError: 'sum'"};
    if (c.spec.reduction == Reduction::sequence_mean) c.spec.reduction = Reduction::sum;
  };
  const Recognition found = two.recognised();
  EXPECT_THAT(found.subject.reductions,
              ElementsAre(Reduction::token_mean, Reduction::seq_mean_token_sum_norm));
  EXPECT_THAT(found.remarks, ElementsAre("another formula under sequence_mean"));
}

TEST(Recognition, DoesNotTakeADivisorOfOneForAReduction) {
  FakeFunction sums("jsd");  // where it is not told token_mean
  sums.with("num_items", 8.0);
  sums.before = [](Case& c) {
    if (c.spec.reduction == Reduction::sum_over_items) c.spec.reduction = Reduction::sum;
  };
  EXPECT_THAT(sums.recognised().subject.reductions,
              ElementsAre(Reduction::token_mean, Reduction::sum));
}

TEST(Recognition, AsksForOneAdvantageASequenceAndASupportOfOne) {
  FakeFunction rows = ppo();
  rows.before = [then = rows.before](Case& c) {
    then(c);
    const Tensor& advantage = c.batch.at("advantage");
    const std::int64_t tokens = c.shape[Axis::tokens];
    for (std::int64_t i = 0; i < advantage.size(); ++i) {
      if (advantage.at(i) != advantage.at(i - i % tokens) && c.batch.at("mask").at(i) != 0.0) {
        throw Refusal{"advantage", -1, -1, "RuntimeError: shapes"};
      }
    }
  };
  Recognition found = rows.recognised();
  EXPECT_THAT(found.subject.arguments, ElementsAre(std::pair<std::string, std::string>(
                                           "advantage", "field:advantage as rows")));

  FakeFunction top("sparse_jsd");
  top.only(Reduction::token_mean);
  top.before = [then = top.before](Case& c) {
    if (c.shape[Axis::support] > 1) throw Refusal{impl::kNotComputed, -1, -1, "one token"};
    then(c);
  };
  found = top.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_THAT(found.subject.axes, ElementsAre(std::pair(Axis::support, std::int64_t{1})));
  EXPECT_THAT(found.remarks, Contains("right only where support is 1"));
}

TEST(Recognition, TellsHowEmptyRowsAreCounted) {
  FakeFunction all_rows("sapo");
  all_rows.only(Reduction::sequence_mean);
  all_rows.after = [&](const Case& c, LossResult& result) {
    const auto valid = valid_positions(all_rows.loss.signature, c);
    const std::int64_t rows = c.shape[Axis::sequences], tokens = c.shape[Axis::tokens];
    double counted = 0.0;
    for (std::int64_t s = 0; s < rows; ++s) {
      const auto row = valid.begin() + s * tokens;
      counted += std::find(row, row + tokens, true) != row + tokens;
    }
    scale(result, counted / static_cast<double>(rows));
  };
  EXPECT_EQ(all_rows.recognised().subject.contract.empty_rows, EmptyRows::counted);
}

TEST(Recognition, AsksInTheFormatThatItTakes) {
  FakeFunction narrow = ppo();
  narrow.before = [then = narrow.before](Case& c) {
    then(c);
    if (c.batch.at("log_prob").dtype == Dtype::f64) throw Refusal{"", -1, -1, "RuntimeError: f32"};
  };
  EXPECT_TRUE(narrow.recognised().whole());
  FakeFunction rounds = ppo();
  rounds.after = [](const Case&, LossResult& result) {
    for (Output& output : result.outputs) {
      for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
        output.tensor.set(i, static_cast<float>(output.tensor.at(i)) * (1.0f + 0x1p-22f));
      }
    }
  };
  EXPECT_TRUE(rounds.recognised().whole());
}

TEST(Recognition, PinsNoOptionThatOnlyRoundsMore) {
  FakeFunction rounds = ppo();
  const std::string option = rounds.told.front();
  rounds.after = [&](const Case& c, LossResult& result) {
    const bool standard =
        *c.spec.find(option) == rounds.loss.signature.find_option(option)->standard;
    if (!standard) scale(result, 1.0 + 0x1p-22);
  };
  const Recognition found = rounds.recognised();
  EXPECT_TRUE(found.whole());
  EXPECT_EQ(find_value(found.subject.options, option), nullptr) << "it follows that";
}

}  // namespace
}  // namespace lossgate::ci
