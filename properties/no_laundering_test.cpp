// SPDX-License-Identifier: Apache-2.0
// Rule C3: which fields are asked for what becomes of a NaN, and what answers it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/fake_answer.h"
#include "properties/fake_grpo.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

TEST(RuleC3, ARefusalOfNanIsAsGoodAsNan) {
  impl::Implementation careful = fake_grpo();
  careful.evaluate = [sound = careful.evaluate](const LossSignature& signature, const Case& c) {
    LossResult result = sound(signature, c);
    if (result.refusal || std::isfinite(result.find("loss")->at(0))) return result;
    LossResult refused;
    refused.refusal = Refusal{.argument = "log_prob", .message = "not finite"};
    return refused;
  };
  EXPECT_EQ(check("no_laundering", careful, grpo_case(2, 3)).verdict, Verdict::held);
}

/// Every NaN of one field becomes 0 before anything else happens.
impl::Implementation repairing(const std::string& field) {
  impl::Implementation fake = fake_grpo();
  fake.evaluate = [field, sound = fake.evaluate](const LossSignature& signature, const Case& c) {
    Case repaired = c;
    Tensor& tensor = repaired.batch.at(field);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (!std::isfinite(tensor.at(i))) tensor.set(i, 0.0);
    }
    return sound(signature, repaired);
  };
  return fake;
}

/// Of which another entry is chosen each time.
Case grpo_case_of(int choice) {
  Case c = grpo_case(2, 3);
  put(c, "log_prob", 0, 0, -0.01 * (choice + 1));
  return c;
}

/// The field and the position of the one entry that the transform spoils.
std::pair<std::string, std::int64_t> poisoned_entry(const Transform& poison, const Case& c) {
  const Case spoilt = poison.apply(grpo().signature, c, c)->c;
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const auto& [field, tensor] : c.batch.fields) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double now = spoilt.batch.at(field).at(i);
      if (now != tensor.at(i)) found.emplace_back(field, i);
    }
  }
  EXPECT_EQ(found.size(), 1U);
  return found.front();
}

TEST(RuleC3, ThreeFieldsAreAskedWhetherTheyAreRepaired) {
  int all = 0;
  for (int i = 0; i < 20; ++i) {
    const Case c = grpo_case_of(i);
    int repaired = 0;
    for (const Transform* poison : {&kNanAtValid, &kNanInAnotherField, &kNanInAThirdField}) {
      const std::string field = poisoned_entry(*poison, c).first;
      repaired += check("no_laundering", repairing(field), c).violation.has_value();
    }
    all += repaired == 3;
    EXPECT_EQ(check("no_laundering", fake_grpo(), c).verdict, Verdict::held);
  }
  EXPECT_GE(all, 15) << "an entry may decide nothing";
}

TEST(RuleC3, AnInfinityThatIsLostIsWhatIsExpected) {
  const auto repaired = answering("dpo", [](Case& c) {
    for (auto& [name, tensor] : c.batch.fields) {
      change_each(tensor, [](double x) { return std::isfinite(x) ? x : 0.0; });
    }
  });
  int infinite = 0, asked = 0;
  for (int i = 0; i < 20; ++i) {
    Case c = ordinary_case("dpo");
    c.batch.at("chosen_log_prob").set(0, -0.01 * (i + 1));
    CaseStudy study(*reference::find_loss("dpo"), c);
    Evaluation evaluation(study, repaired);
    const Outcome outcome = find_property("no_laundering")->check(evaluation);
    if (!outcome.violation) continue;
    const Violation& violation = *outcome.violation;
    EXPECT_FALSE(std::isfinite(violation.expected)) << "no finite number is right";
    const bool nan = violation.detail.starts_with("a NaN");
    EXPECT_TRUE(nan || std::isinf(violation.expected)) << violation.detail;
    infinite += std::isinf(violation.expected);
    ++asked;
  }
  EXPECT_GT(asked, 0);
  EXPECT_GT(infinite, 0) << "of " << asked;
}

TEST(NanAtValid, GoesToAnotherFieldElsewhereEachTime) {
  for (int i = 0; i < 20; ++i) {
    const Case c = grpo_case_of(i);
    const auto first = poisoned_entry(kNanAtValid, c);
    const auto second = poisoned_entry(kNanInAnotherField, c);
    const auto third = poisoned_entry(kNanInAThirdField, c);
    EXPECT_EQ((std::set{first.first, second.first, third.first}).size(), 3U);
    EXPECT_EQ((std::set{first.second, second.second, third.second}).size(), 3U);
  }
}

TEST(NanAtValid, GoesToNoOtherFieldWhereThereIsNone) {
  const Case c = grpo_case(2, 3);
  LossSignature alone = grpo().signature;
  std::erase_if(alone.fields, [&](const Field& field) {
    return is_float(c.batch.at(field.name).dtype) && field.name != "log_prob";
  });
  EXPECT_TRUE(kNanAtValid.apply(alone, c, c));
  EXPECT_FALSE(kNanInAnotherField.apply(alone, c, c));
}

Outcome asked(const impl::Implementation& fake, const Case& c) {
  CaseStudy study(*reference::find_loss(c.spec.loss), c);
  Evaluation evaluation(study, fake);
  return find_property("no_laundering")->check(evaluation);
}

void repair(Tensor& tensor) {
  change_each(tensor, [](double x) { return std::isfinite(x) ? x : 0.0; });
}

/// In how many of some cases what replaces every number of the field that is none is seen.
int noticed(const std::string& loss, const std::string& field) {
  const auto fake = answering(loss, [&](Case& c) { repair(c.batch.at(field)); });
  const auto sound = answering(loss, nullptr);
  int seen = 0;
  for (int i = 0; i < 40; ++i) {
    Case c = ordinary_case(loss);
    Tensor& first = c.batch.fields.front().second;
    first.set(0, first.at(0) * (1.0 + 0.001 * i));  // another choice
    seen += asked(fake, c).violation.has_value();
    EXPECT_FALSE(asked(sound, c).violation) << loss;
  }
  return seen;
}

TEST(RuleC3, AsksOfSequencesAndOfWhatAllShare) {
  EXPECT_GT(noticed("dpo", "rejected_log_prob"), 4);
  EXPECT_GT(noticed("group_advantage", "reward"), 4);
  EXPECT_GT(noticed("linear_cross_entropy", "weight"), 4);
  EXPECT_GT(noticed("linear_cross_entropy", "bias"), 4);
}

TEST(RuleC3, AsksWhatBecomesOfAPairWhoseAnswersAreBothNan) {
  const auto filter = answering("dpo", [](Case& c) {
    Tensor &chosen = c.batch.at("chosen_log_prob"), &rejected = c.batch.at("rejected_log_prob");
    for (std::int64_t i = 0; i < chosen.size(); ++i) {
      if (!std::isnan(chosen.at(i)) || !std::isnan(rejected.at(i))) continue;
      chosen.set(i, 0.0);
      rejected.set(i, 0.0);
    }
  });
  const Outcome outcome = asked(filter, ordinary_case("dpo"));
  ASSERT_TRUE(outcome.violation);
  EXPECT_NE(outcome.violation->detail.find(" and rejected_log_prob["), std::string::npos)
      << outcome.violation->detail;
  EXPECT_FALSE(asked(answering("dpo", nullptr), ordinary_case("dpo")).violation);
}

TEST(RuleC3, AFindingSaysWhatWasPutWhereAndInPlaceOfWhat) {
  std::set<std::string> said;
  for (int i = 0; i < 40; ++i) {
    Case c = grpo_case(2, 3);
    for (std::int64_t at = 0; at < 6; ++at) c.batch.at("log_prob").set(at, -0.5);
    put(c, "advantage", 0, 0, 1.0 + 0.01 * i);  // another choice
    const Outcome outcome = check("no_laundering", repairing("log_prob"), c);
    if (outcome.violation) said.insert(outcome.violation->detail);
  }
  bool single = false, row = false;
  for (const std::string& text : said) {
    EXPECT_TRUE(text.starts_with("a NaN in log_prob[") || text.starts_with("-infinity in ") ||
                text.starts_with("infinity in "))
        << text;
    single |= text.find(", 1] (-0.5 before) at a valid position") != std::string::npos;
    row |= text.find(" before, and in ") != std::string::npos;
  }
  EXPECT_TRUE(single) << testing::PrintToString(said);
  EXPECT_FALSE(row) << "a position of log_prob has one number";
}

/// Where a weight of infinity meets a KL that rounds to 0, a loss that calls that 0 has a number
/// with an impossible token and without; of a NaN it should have none.
TEST(RuleC3, AnInfiniteFormulaSaysNothingOfAnotherInfinity) {
  const auto guards = answering("linear_grpo", nullptr, [](const Case&, LossResult& result) {
    if (!std::isfinite(output(result, "loss").at(0))) output(result, "loss").set(0, 7.0);
  });
  int of_nan = 0;
  for (int i = 0; i < 100; ++i) {
    Case c = ordinary_case("linear_grpo");
    for (const char* clamp : {"log_ratio_clamp", "kl_input_clamp", "kl_output_clamp"}) {
      c.spec.set(clamp, None{});
    }
    c.spec.set("kl_penalty", 0.04);
    c.spec.set("kl_weighted", 1.0);
    Tensor& old_log_prob = c.batch.at("old_log_prob");
    for (std::int64_t at = 0; at < old_log_prob.size(); ++at) old_log_prob.set(at, -1e37);
    c.batch.at("hidden").set(0, 0.01 * i);  // another choice
    const auto violation = asked(guards, c).violation;
    if (!violation) continue;
    EXPECT_TRUE(violation->detail.starts_with("a NaN")) << violation->detail;
    ++of_nan;
  }
  EXPECT_GT(of_nan, 10);
}

/// A field of which the formula makes nothing stands beside an infinite answer: whoever bounds that
/// has done nothing to the NaN.
TEST(RuleC3, AnInfiniteFormulaSaysNothingOfANanThatItDoesNotBecome) {
  const auto bounds = answering("grpo", nullptr, [](const Case&, LossResult& result) {
    for (const char* name : {"loss", "per_token"}) {
      Tensor& tensor = output(result, name);
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (std::isinf(tensor.at(i))) tensor.set(i, 7.0);
      }
    }
  });
  for (int i = 0; i < 100; ++i) {
    Case c = grpo_case_of(i);
    c.spec.set("log_ratio_clamp", None{});
    c.spec.set("dual_clip", None{});
    c.spec.set("kl_penalty", 0.0);
    for (int t = 0; t < 3; ++t) put(c, "old_log_prob", 0, t, -1e37);
    put(c, "advantage", 0, 0, -1.0);
    const auto violation = asked(bounds, c).violation;
    if (violation) EXPECT_EQ(violation->detail.find("ref_log_prob"), std::string::npos);
  }
}

/// An advantage that underflows once it carries the reduction lets nobody look at the log-prob.
TEST(RuleC3, WhatUnderflowsOnTheWayToTheNanIsNotLaundered) {
  const auto guards = answering("grpo", [](Case& c) {
    const Tensor& advantage = c.batch.at("advantage");
    for (const char* field : {"log_prob", "old_log_prob", "ref_log_prob"}) {
      Tensor& tensor = c.batch.at(field);
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (std::isnan(tensor.at(i)) && !std::isnan(advantage.at(i))) tensor.set(i, 0.0);
      }
    }
  });
  int seen = 0;
  for (int i = 0; i < 20; ++i) {
    for (const double advantage : {1e-44, 1e-30}) {
      Case c = grpo_case_of(i);
      c.spec.set("kl_penalty", 0.0);
      for (std::int64_t at = 0; at < 6; ++at) c.batch.at("advantage").set(at, advantage);
      const bool violated = asked(guards, c).violation.has_value();
      if (advantage < 1e-40) EXPECT_FALSE(violated);
      seen += violated;
    }
  }
  EXPECT_GT(seen, 10);
}

TEST(RuleC3, WhatTheFormulaRefusesIsNoPlausibleNumberEither) {
  const auto sound = answering("sparse_jsd", nullptr);
  auto launders = sound;
  launders.evaluate = [&](const LossSignature& signature, Case c) {
    change_each(c.batch.at("teacher_log_prob"), [](double x) { return std::isnan(x) ? -1.0 : x; });
    return sound.evaluate(signature, c);
  };
  int laundered = 0;
  for (int i = 0; i < 20; ++i) {
    Case c = ordinary_case("sparse_jsd");
    c.batch.at("student_logits").set(0, 1.0 + 0.01 * i);  // another choice
    EXPECT_EQ(asked(sound, c).verdict, Verdict::held);
    const Outcome outcome = asked(launders, c);
    laundered += outcome.violation.has_value();
    if (!outcome.violation) continue;
    EXPECT_NE(outcome.violation->detail.find("a NaN in teacher_log_prob"), std::string::npos);
  }
  EXPECT_GT(laundered, 5);
}

/// With nothing discounted the return is (reward - value) + value.
TEST(RuleC3, WhatTheFormulaDoesNotDependOnIsNotLaundered) {
  const auto rewards = answering("gae", nullptr, [](const Case& c, LossResult& result) {
    Tensor& returns = output(result, "return");
    for (std::int64_t i = 0; i < returns.size(); ++i) {
      if (returns.at(i) != 0.0) returns.set(i, c.batch.at("reward").at(i));
    }
  });
  const auto launders = answering(
      "gae", nullptr, [](const Case&, LossResult& result) { repair(output(result, "advantage")); });
  int laundered = 0;
  for (int i = 0; i < 20; ++i) {
    Case c = ordinary_case("gae");
    c.spec.set("gamma", 0.0);
    c.batch.at("reward").set(0, 1.0 + 0.01 * i);  // another choice
    EXPECT_EQ(asked(rewards, c).verdict, Verdict::held);
    laundered += asked(launders, c).violation.has_value();
  }
  EXPECT_GT(laundered, 10);
}

}  // namespace
}  // namespace lossgate::properties
