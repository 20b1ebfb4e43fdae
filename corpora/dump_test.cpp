// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "corpora/case_id.h"
#include "corpora/given_case.h"
#include "corpora/safetensors.h"

namespace lossgate::corpora {
namespace {

/// What a training script leaves: the tensors and the little metadata that it must have.
TensorFile dump() {
  return {.tensors = example_case().batch.fields,
          .metadata = {{"format", "pt"}, {"loss", "example"}, {"reduction", "token_mean"}}};
}

Case decoded(const TensorFile& file) {
  const LossSignature signature = example_signature();
  return decode_safetensors(write_tensors(file), "step.safetensors", only(signature));
}

std::string message_for(const TensorFile& file) {
  try {
    decoded(file);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

std::string message_with(std::string key, std::string value) {
  TensorFile file = dump();
  file.metadata.emplace_back(std::move(key), std::move(value));
  return message_for(file);
}

TEST(Dump, TakesWhatItDoesNotSayFromTheSignature) {
  Case expected = example_case();
  expected.split = {};
  TensorFile file = dump();
  std::swap(file.tensors[0], file.tensors[3]);  // a dump may have any order
  EXPECT_EQ(case_id(decoded(file)), case_id(expected));
  file.metadata.emplace_back("option.clip_low", "0.25");
  EXPECT_EQ(decoded(file).spec.number("clip_low"), 0.25);
}

TEST(Dump, MustSayLossAndReduction) {
  TensorFile file = dump();
  file.metadata.erase(file.metadata.begin() + 2);
  EXPECT_EQ(message_for(file), "step.safetensors: reduction: expected this key, found no such key");
  file.metadata.clear();
  EXPECT_EQ(message_for(file), "step.safetensors: loss: expected this key, found no such key");
}

TEST(Dump, IsHeldToTheSameRulesAsText) {
  EXPECT_EQ(message_with("option.clip_low", "1.5"),
            "step.safetensors: option.clip_low: expected a number from 0 to 0.9, found '1.5'");
  EXPECT_EQ(
      message_with("upstream", "None"),
      "step.safetensors: upstream: expected a number within the range of f64, inf, -inf, nan or "
      "nan(0x................), found 'None'");
  EXPECT_EQ(message_with("shape", "sequences 2, tokens 4"),
            "step.safetensors: shape: expected tokens 3 as the tensors have it, found 4");
  EXPECT_EQ(message_with("lossgate-case", "2"),
            "step.safetensors: lossgate-case: expected 1, found '2'");
  EXPECT_NE(message_with("step", "1200").find("'step': expected a known key"), std::string::npos);
  EXPECT_NE(message_with("option.temperature", "1").find("clip_low, dual_clip"), std::string::npos);
}

TEST(Dump, MustHaveTheTensorsOfTheLoss) {
  TensorFile file = dump();
  file.tensors.emplace_back("reward", Tensor::zeros(Dtype::f32, {2}));
  EXPECT_EQ(message_for(file),
            "step.safetensors: field 'reward': expected a field that the loss example has");
  file = dump();
  file.tensors.pop_back();
  EXPECT_EQ(message_for(file), "step.safetensors: tensor mask: expected this tensor, found none");
  file = dump();
  file.tensors[3].second = Tensor::zeros(Dtype::u8, {2, 4});
  EXPECT_EQ(
      message_for(file),
      "step.safetensors: field mask: expected the shape [sequences 2, tokens 3], found [2, 4]");
  file.tensors[3].second = Tensor::zeros(Dtype::u8, {6});
  EXPECT_EQ(message_for(file), "step.safetensors: tensor mask: expected 2 axes, found 1");
  file.tensors[3].second = Tensor::zeros(Dtype::i64, {2, 3});
  EXPECT_EQ(message_for(file),
            "step.safetensors: field mask: expected the dtype u8, bool, found i64");
  file.tensors[3].second = Tensor{Dtype::boolean, {2, 3}, std::vector<std::byte>(6, std::byte{2})};
  EXPECT_EQ(message_for(file), "step.safetensors: field mask: expected bool elements to be 0 or 1");
}

TEST(Dump, ClaimsNoAbsurdExtentEvenWithoutElements) {
  TensorFile file = dump();
  const auto claim = [&](std::int64_t tokens) {
    for (auto& [field, tensor] : file.tensors) tensor = Tensor::zeros(tensor.dtype, {0, tokens});
    return message_for(file);
  };
  EXPECT_EQ(claim(std::int64_t{1} << 40),
            "step.safetensors: tensor log_prob: expected extents up to 134217728, found "
            "1099511627776");
  EXPECT_EQ(claim(std::int64_t{1} << 20),
            "step.safetensors: shape: expected at most 65536 tokens where no field has an element, "
            "found 1048576");
  EXPECT_EQ(claim(65536), "no error");
}

}  // namespace
}  // namespace lossgate::corpora
