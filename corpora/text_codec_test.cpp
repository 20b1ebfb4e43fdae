// SPDX-License-Identifier: Apache-2.0
#include "corpora/text_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

#include "corpora/files.h"
#include "corpora/given_case.h"
#include "corpora/prose.h"

namespace lossgate::corpora {
namespace {

/// Everything that a round trip has to keep. Prose is kept as tidied.
void expect_same(const Case& actual, const Case& expected) {
  EXPECT_EQ(actual.spec, expected.spec);
  EXPECT_EQ(actual.shape, expected.shape);
  EXPECT_EQ(actual.batch, expected.batch);
  EXPECT_EQ(actual.split, expected.split);
  EXPECT_EQ(actual.layout, expected.layout);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(actual.upstream),
            std::bit_cast<std::uint64_t>(expected.upstream));
  EXPECT_EQ(actual.provenance.title, tidy(expected.provenance.title));
  EXPECT_EQ(actual.provenance.story, tidy(expected.provenance.story));
  EXPECT_EQ(actual.provenance.found_by, tidy(expected.provenance.found_by));
  EXPECT_EQ(actual.provenance.expect, tidy(expected.provenance.expect));
}

RC_GTEST_PROP(TextCodec, ReadsBackEveryBit, (std::uint64_t seed)) {
  Random random(seed);
  const LossSignature signature = random_signature(random);
  const Case c = random_case(signature, random);
  const std::string text = encode(c, signature);
  const Case read = decode(text, "drawn.case", only(signature));
  expect_same(read, c);
  RC_ASSERT(!::testing::Test::HasFailure());
  RC_ASSERT(encode(read, signature) == text);
  RC_ASSERT(case_id(read) == case_id(c));
}

/// The first block of FORMAT.md that is a case.
std::string documented_example() {
  const std::vector<std::byte> bytes = read_file("corpora/FORMAT.md");
  const std::string page(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t start = page.find("lossgate-case: 1\n");
  return page.substr(start, page.find("```", start) - start);
}

TEST(TextCodec, WritesTheExampleOfTheFormatPage) {
  EXPECT_EQ(encode(example_case(), example_signature()), documented_example());
}

TEST(TextCodec, ReadsTheExampleOfTheFormatPage) {
  const LossSignature signature = example_signature();
  expect_same(decode(documented_example(), "example.case", only(signature)), example_case());
}

TEST(TextCodec, AcceptsCommentsBlankLinesAnyOrderAndOtherLineEnds) {
  const LossSignature signature = example_signature();
  std::string text = encode(example_case(), signature);
  const std::size_t loss = text.find("loss: example\n");
  text.erase(loss, 14).insert(text.find("shape:"), "# written by hand\n\nloss: example\n");
  std::string with_returns;
  for (char c : text) with_returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  expect_same(decode(text, "by-hand.case", only(signature)), example_case());
  expect_same(decode(with_returns, "by-hand.case", only(signature)), example_case());
}

TEST(TextCodec, NumbersNeedNotBeTheShortest) {
  const LossSignature signature = example_signature();
  std::string text = encode(example_case(), signature);
  text.replace(text.find("  -0.1 -2.5"), 11, "\t-1.0000e-1   -002.50");
  expect_same(decode(text, "by-hand.case", only(signature)), example_case());
}

TEST(TextCodec, RefusesToWriteACaseThatDoesNotFit) {
  const LossSignature signature = example_signature();
  Case c = example_case();
  c.batch.at("mask").bytes.pop_back();
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.spec.set("clip_low", "token");
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.spec.set("clip_low", "0.5");  // reads like a number, but is none
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.spec.options.pop_back();
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.batch.fields.pop_back();
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.batch.fields.push_back(c.batch.fields.front());
  EXPECT_THROW(encode(c, signature), FormatError);
  c = example_case();
  c.shape[Axis::hidden] = 4;
  EXPECT_THROW(encode(c, signature), FormatError);
}

TEST(CaseId, StaysTheSameOverVersionsAndMachines) {
  EXPECT_EQ(case_id(example_case()), "7cb0d502fbfe6231");
}

TEST(CaseId, ChangesWithWhateverCanChangeAResultAndWithNothingElse) {
  const std::string id = case_id(example_case());
  const auto changed = [&](auto change) {
    Case c = example_case();
    change(c);
    return case_id(c) != id;
  };
  EXPECT_FALSE(changed([](Case& c) { c.provenance = {}; }));
  EXPECT_TRUE(changed([](Case& c) { c.spec.loss += "2"; }));
  EXPECT_TRUE(changed([](Case& c) { c.spec.reduction = Reduction::sum; }));
  EXPECT_TRUE(changed([](Case& c) { c.spec.set("clip_low", 0.25); }));
  EXPECT_TRUE(changed([](Case& c) { c.spec.set("clip_low", None{}); }));
  EXPECT_TRUE(changed([](Case& c) { c.spec.set("level", "sequence"); }));
  EXPECT_TRUE(changed([](Case& c) { c.split = {}; }));
  EXPECT_TRUE(changed([](Case& c) { c.split.world = 3; }));
  EXPECT_TRUE(changed([](Case& c) { std::swap(c.split.parts[0], c.split.parts[2]); }));
  EXPECT_TRUE(changed([](Case& c) { c.layout = Layout::transposed; }));
  EXPECT_TRUE(changed([](Case& c) { c.upstream = 0.0; }));
  EXPECT_TRUE(changed([](Case& c) { c.shape[Axis::support] = 0; }));
  EXPECT_TRUE(changed([](Case& c) { c.batch.at("log_prob").set(3, 0.0); }));  // was -0
  EXPECT_TRUE(changed([](Case& c) { c.batch.at("mask").dtype = Dtype::boolean; }));
  EXPECT_TRUE(changed([](Case& c) { c.batch.fields[0].first = "other"; }));
  EXPECT_TRUE(changed([](Case& c) { c.batch.at("mask").extents = {3, 2}; }));
}

}  // namespace
}  // namespace lossgate::corpora
