// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <utility>

#include "corpora/dump.h"
#include "corpora/safetensors.h"
#include "reference/spec/numbers.h"

namespace lossgate::corpora {
namespace {

LossSignature policy() {
  const std::vector<Axis> axes = {Axis::sequences, Axis::tokens};
  const auto field = [&](const char* name, Role role, std::vector<Dtype> dtypes = {}) {
    return Field{.name = name, .role = role, .axes = axes, .dtypes = std::move(dtypes)};
  };
  return {.id = "policy",
          .title = "",
          .formula = "",
          .source = "",
          .options =
              {{.name = "clip", .kind = Option::Kind::real, .standard = 0.1, .low = 0, .high = 1},
               {.name = "weighted", .kind = Option::Kind::flag, .standard = 0.0}},
          .fields = {field("log_prob", Role::differentiable), field("advantage", Role::constant),
                     field("mask", Role::mask, {Dtype::u8})},
          .reductions = {Reduction::token_mean, Reduction::sum},
          .mask = "mask"};
}

Tensor numbers(Dtype dtype, Extents extents, std::initializer_list<double> values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(extents));
  std::int64_t i = 0;
  for (const double value : values) tensor.set(i++, value);
  return tensor;
}

TensorFile written() {
  return {.tensors = {{"log_prob", numbers(Dtype::bf16, {2, 2}, {-1, -2, -3, -4})},
                      {"advantage", numbers(Dtype::f32, {2}, {0.1, 2})},
                      {"mask", numbers(Dtype::boolean, {2, 2}, {1, 1, 1, 0})},
                      {"observed.gradient.log_prob", numbers(Dtype::bf16, {2, 2}, {1, 0, 0, 0})},
                      {"observed.loss", numbers(Dtype::f32, {}, {0.5})}},
          .metadata = {{"lossgate-dump", "1"},
                       {"loss", "policy"},
                       {"upstream", "1024.0"},
                       {"given.reduction", "\"sum\""},
                       {"given.clip", "0.25"},
                       {"given.weighted", "true"},
                       {"given.own", "null"},
                       {"kept.rows", "[3, 7]"},
                       {"kept.tokens", "[0, 1]"},
                       {"kept.of", "[8, 2]"},
                       {"kept.counts", "{\"mask\": 12}"},
                       {"run.differentiable", "[\"log_prob\"]"},
                       {"run.step", "1234"}}};
}

std::string complaint(TensorFile file) {
  try {
    dump_of(std::move(file), "x");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(WatchDump, SaysWhatWasKeptAndWhatWasObserved) {
  const Dump dump = dump_of(written(), "x");
  EXPECT_EQ(dump.loss, "policy");
  EXPECT_EQ(dump.upstream, 1024.0);
  EXPECT_EQ(dump.rows, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(dump.whole, (std::vector<std::int64_t>{8, 2}));
  EXPECT_EQ(dump.counts.at("mask"), 12);
  EXPECT_EQ(dump.differentiable, std::vector<std::string>{"log_prob"});
  EXPECT_EQ(dump.run_fact("step"), "1234");
  EXPECT_EQ(dump.fields.size(), 3u);
  ASSERT_TRUE(dump.find_gradient("log_prob"));
  EXPECT_EQ(dump.find_gradient("log_prob")->at(0), 1.0);
  ASSERT_TRUE(dump.observed);
  EXPECT_EQ(dump.observed->at(0), 0.5);
  EXPECT_EQ(dump.find_given("own")->value, OptionValue(None{}));
  EXPECT_EQ(dump.find_given("weighted")->kind, Option::Kind::flag);
}

TEST(WatchDump, IsACaseOfItsLoss) {
  const LossSignature signature = policy();
  const auto bytes = write_tensors(written());
  const Case c = decode_safetensors(
      bytes, "x", [&](std::string_view loss) { return loss == "policy" ? &signature : nullptr; });
  EXPECT_EQ(c.spec.reduction, Reduction::sum);
  EXPECT_EQ(c.spec.number("clip"), 0.25);
  EXPECT_EQ(c.spec.number("weighted"), 1.0);
  EXPECT_EQ(c.upstream, 1024.0);
  EXPECT_EQ(c.batch.at("log_prob").dtype, Dtype::f32);  // as the advantage
  EXPECT_EQ(c.batch.at("log_prob").at(3), -4.0);
  EXPECT_EQ(c.batch.at("advantage").extents, (Extents{2, 2}));
  EXPECT_EQ(c.batch.at("advantage").at(1), c.batch.at("advantage").at(0));
  EXPECT_EQ(c.batch.at("mask").dtype, Dtype::u8);
  EXPECT_EQ(c.batch.at("mask").at(3), 0.0);
}

TEST(WatchDump, MustSayOfWhichKindEachSequenceIs) {
  LossSignature signature = policy();
  signature.fields.push_back({.name = "wanted",
                              .role = Role::constant,
                              .quantity = Quantity::mask,
                              .axes = {Axis::sequences},
                              .dtypes = {Dtype::boolean}});
  TensorFile file = written();
  EXPECT_THROW(case_file_of(dump_of(file, "x"), signature, "x"), FormatError);
  file.tensors.emplace_back("wanted", numbers(Dtype::boolean, {2}, {1, 0}));
  const TensorFile as_case = case_file_of(dump_of(file, "x"), signature, "x");
  EXPECT_EQ(as_case.find_tensor("wanted")->at(0), 1.0);
  EXPECT_EQ(as_case.find_tensor("wanted")->at(1), 0.0);
}

TEST(WatchDump, LacksWhatTheTrainerDidNotName) {
  TensorFile file = written();
  std::erase_if(file.tensors,
                [](const auto& pair) { return pair.first == "mask" || pair.first == "advantage"; });
  const TensorFile as_case = case_file_of(dump_of(file, "x"), policy(), "x");
  EXPECT_EQ(as_case.find_tensor("mask")->at(3), 1.0);
  EXPECT_EQ(as_case.find_tensor("advantage")->at(3), 0.0);
  std::erase_if(file.tensors, [](const auto& pair) { return pair.first.ends_with("log_prob"); });
  EXPECT_THROW(case_file_of(dump_of(file, "x"), policy(), "x"), FormatError);
}

TEST(WatchDump, ReadsNumbersThatJsonHasNoWordFor) {
  for (const auto& [text, value] :
       {std::pair("\"inf\"", HUGE_VAL), std::pair("-Infinity", -HUGE_VAL)}) {
    TensorFile file = written();
    file.metadata.emplace_back("given.bound", text);
    EXPECT_EQ(dump_of(file, "x").find_given("bound")->value, OptionValue(value)) << text;
  }
  TensorFile file = written();
  file.metadata.emplace_back("given.bound", "NaN");
  EXPECT_TRUE(std::isnan(std::get<double>(dump_of(file, "x").find_given("bound")->value)));
}

TEST(WatchDump, AsACaseKeepsWholeNumbersBesideNarrowOnes) {
  const auto advantage = [](double value) {
    TensorFile file = written();
    for (auto& [name, tensor] : file.tensors) {
      if (is_float(tensor.dtype) && name != "observed.loss") {
        tensor = as_dtype(std::move(tensor), Dtype::bf16);
      }
      if (name == "advantage") tensor = Tensor::zeros(Dtype::i64, tensor.extents);
      if (name == "advantage") tensor.set(0, value);
    }
    return *case_file_of(dump_of(file, "x"), policy(), "x").find_tensor("advantage");
  };
  EXPECT_EQ(advantage(3.0).dtype, Dtype::bf16);
  EXPECT_EQ(advantage(1001.0).dtype, Dtype::f32);
  EXPECT_EQ(advantage(1001.0).at(0), 1001.0);
  EXPECT_EQ(advantage(0x1p24 + 1.0).at(0), 0x1p24 + 1.0);
}

TEST(WatchDump, IsNoCaseWhereWatchWasToldOfNoLoss) {
  TensorFile file = written();
  std::erase_if(file.metadata, [](const auto& pair) { return pair.first == "loss"; });
  try {
    decode_safetensors(write_tensors(file), "x", [](std::string_view) { return nullptr; });
    FAIL() << "a loss was guessed";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string_view(error.what()).find("watch(loss=...) was not told of any"),
              std::string_view::npos)
        << error.what();
  }
}

TEST(WatchDump, AsACaseTakesNoHalfOfAMask) {
  TensorFile file = written();
  for (auto& [name, tensor] : file.tensors) {
    if (name == "mask") tensor = as_dtype(std::move(tensor), Dtype::f32);
    if (name == "mask") tensor.set(0, 0.5);
  }
  try {
    case_file_of(dump_of(file, "x"), policy(), "x");
    FAIL() << "half a position was masked";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor mask: expected numbers that"),
              std::string::npos)
        << error.what();
  }
}

TEST(WatchDump, AsACaseAllocatesNothingForLengthsThatNoTensorHas) {
  TensorFile file = written();
  std::erase_if(file.tensors, [](const auto& pair) {
    return pair.first == "mask" || pair.first.starts_with("observed.");
  });
  const auto refused = [&](Extents log_prob, Extents advantage) {
    file.tensors[0].second = Tensor::zeros(Dtype::bf16, std::move(log_prob));
    file.tensors[1].second = Tensor::zeros(Dtype::f32, std::move(advantage));
    try {
      case_file_of(dump_of(file, "x"), policy(), "x");
      return false;
    } catch (const FormatError& error) {
      return std::string_view(error.what()).find("together make them more") != std::string::npos;
    }
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_TRUE(refused({1, 2000}, {2000, 1}));
  EXPECT_TRUE(refused({0, kHuge}, {kHuge, 0}));
  EXPECT_FALSE(refused({2, 2}, {2, 1}));
}

TEST(WatchDump, OfListsInListsIsRefusedHoweverDeep) {
  TensorFile file = written();
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (auto& [name, text] : file.metadata) {
    if (name == "kept.rows") text = deep;
  }
  EXPECT_NE(complaint(file).find("kept.rows: expected a list of integers"), std::string::npos);
}

TEST(WatchDump, OfANewerVersionIsRefusedWithItsVersion) {
  TensorFile file = written();
  file.metadata[0].second = "2";
  EXPECT_NE(complaint(file).find("expected 1, found '2'"), std::string::npos) << complaint(file);
}

TEST(WatchDump, IsReadStrictly) {
  const auto with = [](const char* key, const char* value) {
    TensorFile file = written();
    for (auto& [name, text] : file.metadata) {
      if (name == key) text = value;
    }
    return complaint(file);
  };
  EXPECT_NE(with("kept.rows", "[1.5]").find("kept.rows: expected a list of integers"),
            std::string::npos);
  EXPECT_NE(with("kept.of", "{").find("kept.of: expected JSON"), std::string::npos);
  EXPECT_NE(with("upstream", "much").find("upstream: expected a number"), std::string::npos);
  EXPECT_NE(with("kept.counts", "[]").find("expected integers by name"), std::string::npos);
  TensorFile file = written();
  file.metadata.emplace_back("colour", "red");
  EXPECT_NE(complaint(file).find("'colour': expected a key that watch writes"), std::string::npos);
  file = written();
  file.tensors[3].second = numbers(Dtype::f32, {1}, {0});
  EXPECT_NE(complaint(file).find("expected the shape of the tensor"), std::string::npos);
}

}  // namespace
}  // namespace lossgate::corpora
