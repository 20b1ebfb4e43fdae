// SPDX-License-Identifier: Apache-2.0
#include "impl/external/omission.h"

#include <gtest/gtest.h>

#include "impl/external/given_subject.h"

namespace lossgate::impl {
namespace {

using Names = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Of a policy, whose old and reference log-probs a caller may have none of.
LossSignature signature() {
  const auto log_prob = [](std::string name, std::string stand_in) {
    Field field{std::move(name), Role::constant, Quantity::log_prob, {Axis::sequences}};
    field.optional = true;
    field.stand_in = std::move(stand_in);
    return field;
  };
  LossSignature loss;
  loss.fields = {{"log_prob", Role::differentiable, Quantity::log_prob, {Axis::sequences}},
                 log_prob("old", "log_prob"),
                 log_prob("ref_chosen", ""),
                 log_prob("ref_rejected", "")};
  return loss;
}

Subject subject() {
  Subject mine;
  mine.name = "mine";
  mine.entry = "py:mine.py:f";
  return mine;
}

TEST(Omission, IsOfEachOptionalFieldAndOfThoseThatGoTogether) {
  const auto found = omissions(subject(), signature());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "mine-without-old");
  EXPECT_EQ(found[0].fields, Names{"old"});
  EXPECT_EQ(found[1].name, "mine-without-ref_chosen-ref_rejected");
  EXPECT_EQ(found[1].fields, (Names{"ref_chosen", "ref_rejected"}));
}

TEST(Omission, LeavesTheDeviceAtTheEndOfTheName) {
  Subject mine = subject();
  mine.device = "cuda";
  mine.name = "mine@cuda";
  EXPECT_EQ(omissions(mine, signature()).at(0).name, "mine-without-old@cuda");
}

TEST(Omission, IsNotMadeOfALibraryNorWhereTheContractSaysSo) {
  const auto find = [](std::string_view) -> const LossSignature* {
    static const LossSignature loss = signature();
    return &loss;
  };
  EXPECT_EQ(omissions(given_subject("", "toy", find), signature()).size(), 2U);
  const std::string promise = "contract = { omitted_fields = false }\n";
  EXPECT_TRUE(omissions(given_subject(promise, "toy", find), signature()).empty());
  Subject mine = subject();
  mine.entry = "so:libmine.so:f";
  EXPECT_TRUE(omissions(mine, signature()).empty());
}

TEST(Omission, LeavesEveryParameterOfItsFieldsAtItsDefault) {
  Subject mine = subject();
  mine.arguments = {{"o", "field:old as float"}, {"x", "field:log_prob"}};
  Greeting greeting;
  greeting.arguments = {{"o", "field:old as float"}, {"o2", "field:old"}, {"x", "field:log_prob"}};
  greeting.omissible = {"o", "o2"};
  const Omission old = omissions(mine, signature()).at(0);
  const auto twin = omitting(old, mine, greeting);
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->name, "mine-without-old");
  EXPECT_EQ(twin->omitted, Names{"old"});
  EXPECT_EQ(twin->arguments, (Pairs{{"x", "field:log_prob"}, {"o", "default"}, {"o2", "default"}}));
  greeting.omissible = {"o"};
  EXPECT_FALSE(omitting(old, mine, greeting)) << "o2 is asked for";
}

TEST(Omission, IsOfAFieldThatTheFunctionTakes) {
  Greeting greeting;
  greeting.arguments = {{"old_one", "field:older"}};
  greeting.omissible = {"old_one"};
  EXPECT_FALSE(omitting(omissions(subject(), signature()).at(0), subject(), greeting));
}

}  // namespace
}  // namespace lossgate::impl
