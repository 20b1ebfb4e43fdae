// SPDX-License-Identifier: Apache-2.0
#include "impl/external/own_signature.h"

#include <gtest/gtest.h>

namespace lossgate::impl {
namespace {

const LossSignature* nothing_known(std::string_view) { return nullptr; }

LossSignature parse(const std::string& text) {
  return parse_signature(text, "ours.toml", nothing_known);
}

const std::string kField = "[[field]]\nname = 'x'\nrole = 'differentiable'\n";
const std::string kHead = "id = 'ours'\n";

TEST(OwnSignature, ReadsWhatItMayHold) {
  const LossSignature loss = parse(R"(
id = "ours"
title = "Ours"
formula = "f"
source = "a paper"
reductions = ["sum", "sequence_mean"]
ignore_label = "label"
advantage = "a"
coefficient = "scale"
splittable = false
[[field]]
name = "logits"
role = "differentiable"
quantity = "logit"
axes = ["sequences", "tokens", "vocab"]
infinity = "surfaces"
[[field]]
name = "label"
role = "label"
axes = ["sequences", "tokens"]
[[field]]
name = "a"
role = "constant"
quantity = "advantage"
axes = ["sequences", "tokens"]
[[option]]
name = "scale"
default = 0.5
low = 0
high = 2
[[option]]
name = "mode"
default = "near"
choices = ["near", "far"]
[[option]]
name = "whole"
default = true
[[option]]
name = "tokens"
default = 4
high = 16
integer = true
[[output]]
name = "per_token"
axes = ["sequences", "tokens"]
)");
  EXPECT_EQ(loss.reductions, (std::vector{Reduction::sum, Reduction::sequence_mean}));
  EXPECT_EQ(loss.ignore_label, "label");
  EXPECT_EQ(loss.advantage, "a");
  EXPECT_EQ(loss.coefficient, "scale");
  EXPECT_FALSE(loss.splittable || loss.shardable);
  EXPECT_EQ(loss.fields.at(0).quantity, Quantity::logit);
  EXPECT_EQ(loss.fields.at(0).infinity, Infinity::surfaces);
  EXPECT_EQ(loss.fields.at(1).quantity, Quantity::label);
  EXPECT_EQ(loss.find_option("scale")->high, 2.0);
  EXPECT_EQ(loss.find_option("mode")->kind, Option::Kind::choice);
  EXPECT_EQ(loss.find_option("whole")->kind, Option::Kind::flag);
  EXPECT_EQ(loss.find_option("tokens")->kind, Option::Kind::integer);
  EXPECT_EQ(loss.outputs.at(0).axes.size(), 2U);
}

TEST(OwnSignature, SaysWhereItContradictsItself) {
  const std::pair<std::string, std::string> mistakes[] = {
      {kField, "needs id"},
      {"id = 'Ours'\n" + kField, "1:6: 'Ours' must be lower-case letters"},
      {kHead, "no field is differentiable"},
      {kHead + "[[field]]\nname = 'x'\nrole = 'constant'\n", "no field is differentiable"},
      {kHead + kField + kField, "6:8: two things are called 'x'"},
      {kHead + kField + "axes = ['time']\n", "no axis 'time'; there are sequences"},
      {kHead + kField + "axes = ['tokens', 'sequences']\n", "axes come in this order"},
      {kHead + kField + "axes = ['tokens']\n", "tokens are those of sequences"},
      {kHead + kField + "quantity = 'label'\n",
       "a field of role differentiable measures one of value, log_prob, advantage"},
      {kHead + kField + "[[field]]\nname = 'm'\nrole = 'mask'\n",
       "has the axes sequences and tokens"},
      {kHead + kField + "infinity = 'refused'\n", "'infinity' must be one of legal, surfaces"},
      {kHead + "ignore_label = 'y'\n" + kField +
           "[[field]]\nname = 'y'\nrole = 'label'\naxes = ['sequences']\n",
       "'ignore_label' is of labels of tokens"},
      {kHead + "advantage = 'x'\n" + kField, "2:13: 'x' is no field of advantages"},
      {kHead + "coefficient = 'x'\n" + kField, "'x' is no option"},
      {kHead + "reductions = ['mean']\n" + kField, "sum, token_mean, sequence_mean"},
      {kHead + "field = 3\n", "write [[field]]"},
      {kHead + kField + "[[option]]\nname = 'o'\n", "an option needs default"},
      {kHead + kField + "[[option]]\nname = 'o'\ndefault = 3\nhigh = 2\n",
       "'default' must lie between 'low' and 'high'"},
      {kHead + kField + "[[option]]\nname = 'o'\ndefault = 'a'\nchoices = ['b']\n",
       "'default' must be one of b"},
      {kHead + kField + "[[output]]\nname = 'loss'\n", "6:8: 'loss' is the loss itself"},
      {kHead + kField + "[[option]]\nname = 'k'\ninteger = true\ndefault = 4\nhigh = 4.5\n",
       "'default', 'low' and 'high' of an integer are whole"},
      {kHead + "colour = 1\n" + kField, "2:1: a signature has no key 'colour'"},
      {"id = [\n", "ours.toml:1:8:"},
  };
  for (const auto& [text, expected] : mistakes) {
    try {
      parse(text);
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos)
          << text << error.what();
    }
  }
}

TEST(OwnSignature, LeavesTheCatalogsNamesToTheCatalog) {
  const auto known = [](std::string_view) -> const LossSignature* {
    static const LossSignature loss;
    return &loss;
  };
  EXPECT_THROW(parse_signature(kHead + kField, "ours.toml", known), ConfigError);
}

}  // namespace
}  // namespace lossgate::impl
