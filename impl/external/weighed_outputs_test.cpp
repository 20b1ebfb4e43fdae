// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "impl/external/given_subject.h"
#include "impl/external/greeting.h"

namespace lossgate::impl {
namespace {

/// Two outputs, each weighed by a field, and one that is not.
LossSignature weighed_signature() {
  LossSignature loss;
  loss.id = "toy";
  loss.reductions = {Reduction::sum};
  loss.fields = {{"x", Role::differentiable, Quantity::logit, {Axis::sequences, Axis::tokens}}};
  loss.outputs = {{"per_token", {Axis::sequences, Axis::tokens}}};
  for (const char* name : {"first", "second"}) {
    loss.outputs.push_back({name, {Axis::sequences, Axis::tokens}});
    loss.fields.push_back({std::string(name) + "_weight",
                           Role::weight,
                           Quantity::upstream,
                           {Axis::sequences, Axis::tokens}});
  }
  return loss;
}

const LossSignature* find(std::string_view id) {
  static const LossSignature weighed = weighed_signature();
  static const LossSignature bare = [] {
    LossSignature loss = weighed_signature();
    std::erase_if(loss.fields, [](const Field& field) { return field.role == Role::weight; });
    return loss;
  }();
  return id == "toy" ? &weighed : &bare;
}

Subject parse(const std::string& lines, const char* loss = "toy") {
  return given_subject(lines, loss, find);
}

std::string complaint(const std::string& lines, const char* loss = "toy") {
  return complaint_of(lines, loss, find);
}

TEST(WeighedOutputs, AreAllThatAFieldWeighsUnlessTheyAreListed) {
  EXPECT_FALSE(parse("").weighed_outputs);
  EXPECT_FALSE(parse("returns = 'per_token'\n").weighed_outputs);
  const Subject all = parse("returns = 'outputs'\n");
  EXPECT_TRUE(all.weighed_outputs);
  EXPECT_FALSE(all.per_token);
  EXPECT_EQ(all.outputs, (std::vector<std::string>{"first", "second"}));
  const Subject one = parse("returns = 'outputs'\noutputs = ['second']\n");
  EXPECT_EQ(one.outputs, std::vector<std::string>{"second"});
}

TEST(WeighedOutputs, AreToldInTheOrderInWhichTheyAreReturned) {
  const Subject turned = parse("returns = 'outputs'\noutputs = ['second', 'first']\n");
  const auto said = hello(turned, weighed_signature());
  const std::string outputs = text_of(said, "outputs");
  EXPECT_LT(outputs.find("second"), outputs.find("first")) << outputs;
  EXPECT_EQ(outputs.find("per_token"), outputs.npos) << outputs;
  EXPECT_EQ(text_of(said, "returns"), "outputs");
  EXPECT_EQ(text_of(hello(parse(""), weighed_signature()), "returns"), "loss");
}

TEST(WeighedOutputs, AreOfALossThatWeighsThem) {
  EXPECT_NE(
      complaint("returns = 'outputs'\noutputs = ['per_token']\n")
          .find("no field of toy weighs 'per_token'; those that are weighed are first, second"),
      std::string::npos);
  EXPECT_NE(complaint("returns = 'outputs'\n", "bare").find("no field of toy weighs an output"),
            std::string::npos);
  EXPECT_NE(complaint("returns = 'terms'\n").find("must be one of loss, per_token, outputs"),
            std::string::npos);
}

TEST(WeighedOutputs, AreWeighedByNothingWhereTheSubjectDoesNotReturnThem) {
  Subject subject;
  subject.outputs = {"second"};
  EXPECT_FALSE(narrowed(weighed_signature(), subject).find_field("first_weight")->absent)
      << "it returns its loss, and may have weighed any";
  subject.weighed_outputs = true;
  const LossSignature loss = narrowed(weighed_signature(), subject);
  EXPECT_TRUE(loss.find_field("first_weight")->absent);
  EXPECT_FALSE(loss.find_field("second_weight")->absent);
  EXPECT_FALSE(loss.find_field("x")->absent);
  ASSERT_EQ(loss.outputs.size(), 1U);
  EXPECT_EQ(loss.outputs[0].name, "second");
}

}  // namespace
}  // namespace lossgate::impl
