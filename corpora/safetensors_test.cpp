// SPDX-License-Identifier: Apache-2.0
#include "corpora/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstring>
#include <source_location>

#include "corpora/given_case.h"
#include "corpora/prose.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

using Bytes = std::vector<std::byte>;

/// A file with this header and so many bytes of data, 0, 1, 2, ...
Bytes framed(std::string_view json, std::size_t data = 0) {
  Bytes bytes(8 + json.size() + data);
  const std::uint64_t length = json.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, json.data(), json.size());
  for (std::size_t i = 0; i < data; ++i) bytes[8 + json.size() + i] = static_cast<std::byte>(i);
  return bytes;
}

void refuses(const Bytes& bytes, std::string_view part,
             std::source_location place = std::source_location::current()) {
  std::string message = "no error";
  try {
    read_tensors(bytes, "bad.safetensors");
  } catch (const FormatError& error) {
    message = error.what();
  }
  const bool says = message.starts_with("bad.safetensors: ") &&
                    message.find(part) != std::string::npos &&
                    message.find('\n') == std::string::npos && message.size() < 300;
  if (!says) ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line())) << message;
}

RC_GTEST_PROP(Safetensors, ReadsBackEveryBitOfACase, (std::uint64_t seed)) {
  Random random(seed);
  const LossSignature signature = random_signature(random);
  const Case c = random_case(signature, random);
  const Bytes bytes = encode_safetensors(c);
  RC_ASSERT(encode_safetensors(c) == bytes);
  const Case read = decode_safetensors(bytes, "drawn.safetensors", only(signature));
  RC_ASSERT(case_id(read) == case_id(c));
  RC_ASSERT(read.batch == c.batch);
  RC_ASSERT(read.provenance.story == tidy(c.provenance.story));
  RC_ASSERT(encode(read, signature) == encode(c, signature));
}

TEST(Safetensors, KeepsTheOrderOfTensorsAndAlignsTheirData) {
  const Tensor byte{Dtype::u8, {3}, {std::byte{1}, std::byte{2}, std::byte{3}}};
  const TensorFile file{.tensors = {{"byte", byte},
                                    {"double", Tensor::zeros(Dtype::f64, {2})},
                                    {"empty", Tensor::zeros(Dtype::f16, {0, 4})},
                                    {"gradient.x", Tensor::zeros(Dtype::bf16, {})}},
                        .metadata = {{"z", "last"}, {"a", "\xe2\x88\x9e \"quoted\"\n"}}};
  const Bytes bytes = write_tensors(file);
  EXPECT_EQ(read_tensors(bytes, "file"), file);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(text.find(R"("double":{"dtype":"F64","shape":[2],"data_offsets":[0,16]})"), text.npos);
  EXPECT_NE(text.find(R"("byte":{"dtype":"U8","shape":[3],"data_offsets":[18,21]})"), text.npos);
  EXPECT_EQ((bytes.size() - 21) % 8, 0u);
}

TEST(Safetensors, ReadsWhatOtherWritersWrite) {
  const Bytes bytes = framed(R"({"b":{"data_offsets":[4,8],"shape":[2],"dtype":"BF16"},)"
                             R"( "__metadata__":{"format":"pt"},)"
                             R"( "a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}     )",
                             8);
  const TensorFile file = read_tensors(bytes, "file");
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].first, "b");
  EXPECT_EQ(file.find_tensor("b")->bytes,
            (Bytes{std::byte{4}, std::byte{5}, std::byte{6}, std::byte{7}}));
  EXPECT_EQ(file.find_tensor("a")->extents, (Extents{2, 2}));
  EXPECT_EQ(*file.find_metadata("format"), "pt");
  EXPECT_EQ(read_tensors(framed("{}"), "file"), TensorFile());
}

TEST(Safetensors, RefusesABrokenFrame) {
  refuses({}, "eight bytes, found 0");
  refuses(Bytes(7), "eight bytes, found 7");
  refuses(Bytes(8), "expected 1 to 0 bytes, found 0");
  refuses(Bytes(20), "expected 1 to 12 bytes, found 0");
  refuses(Bytes(20, std::byte{0xff}), "expected 1 to 12 bytes, found 18446744073709551615");
  Bytes longer = framed("{}");
  longer[0] = std::byte{3};
  refuses(longer, "expected 1 to 2 bytes, found 3");
  refuses(framed("[]"), "start with '{'");
  refuses(framed(" {}"), "start with '{'");
  refuses(framed("{}", 1), "expected 0 bytes, found 1");
}

TEST(Safetensors, RefusesAHeaderThatIsNotTheFormat) {
  const auto tensor = [](std::string_view keys) {
    return framed("{\"a\":{" + std::string(keys) + "}}", 4);
  };
  refuses(framed("{"), "expected JSON");
  refuses(framed("{}}"), "expected JSON");
  refuses(framed("{\"a\":\"\xff\"}"), "expected JSON");
  refuses(framed("{\"a\":1}"), "an object with dtype, shape and data_offsets, found a number");
  refuses(framed("{\"a\":null}"), "found null");
  refuses(framed("{\"a\":[]}"), "found an array");
  refuses(framed("{\"a\":{}}"), "found not all");
  refuses(tensor(R"("dtype":"U8","shape":[4])"), "found not all");
  refuses(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1)"), "the key 'x'");
  refuses(tensor(R"("dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4])"),
          "shape only once");
  refuses(tensor(R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4])"), "found 'F8_E4M3'");
  refuses(tensor(R"("dtype":8,"shape":[4],"data_offsets":[0,4])"),
          "a string as dtype, found a number");
  refuses(tensor(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"),
          "counts as shape, found the number -4");
  refuses(tensor(R"("dtype":"U8","shape":[4.0],"data_offsets":[0,4])"), "found the number '4.0'");
  refuses(tensor(R"("dtype":"U8","shape":[1e99],"data_offsets":[0,4])"), "found the number '1e99'");
  refuses(tensor(R"("dtype":"U8","shape":[[4]],"data_offsets":[0,4])"),
          "counts as shape, found an array");
  refuses(tensor(R"("dtype":"U8","shape":4,"data_offsets":[0,4])"),
          "counts as shape, found a number");
  refuses(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0])"), "two data_offsets");
  refuses(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4,4])"), "two data_offsets");
  refuses(tensor(R"("dtype":"U8","shape":[4],"data_offsets":{"a":0})"),
          "data_offsets, found an object");
  refuses(framed(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                 R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
          "each name only once");
  refuses(framed(R"({"__metadata__":{},"__metadata__":{}})"), "each name only once");
  refuses(framed(R"({"__metadata__":{"k":"1","k":"2"}})"), "each metadata key only once");
  refuses(framed(R"({"__metadata__":{"k":1}})"), "object of strings");
  refuses(framed(R"({"__metadata__":[]})"), "object of strings");
  refuses(framed(R"({"__metadata__":{"k":{}}})"), "object of strings");
}

TEST(Safetensors, IsNotImpressedByDepth) {
  const std::string open(1'000'000, '[');
  refuses(framed("{\"a\":" + open), "found an array");
  std::string nested;
  for (int i = 0; i < 300'000; ++i) nested += "{\"a\":";
  refuses(framed(nested), "expected dtype, shape and data_offsets only");
}

TEST(Safetensors, RefusesRangesThatDoNotFit) {
  const auto tensor = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return framed("{\"a\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" +
                      std::string(shape) + ",\"data_offsets\":" + std::string(offsets) + "}}",
                  8);
  };
  EXPECT_NO_THROW(read_tensors(tensor("F32", "[2]", "[0,8]"), "file"));
  refuses(tensor("F32", "[2]", "[0,9]"), "within the 8 bytes");
  refuses(tensor("F32", "[2]", "[8,0]"), "found 8 to 0");
  refuses(tensor("F32", "[2]", "[0,18446744073709551615]"), "within the 8 bytes");
  refuses(tensor("F32", "[1]", "[0,8]"), "as far apart");
  refuses(tensor("F16", "[2]", "[0,8]"), "as far apart");
  refuses(tensor("F64", "[]", "[0,7]"), "as far apart");
  refuses(tensor("U8", "[4294967296,4294967296]", "[0,0]"), "as far apart");
  refuses(tensor("U8", "[9223372036854775807,2]", "[0,8]"), "as far apart");
  refuses(tensor("U8", "[9223372036854775808]", "[0,8]"), "a smaller extent");
  refuses(tensor("F32", "[4611686018427387906]", "[0,8]"), "as far apart");  // times 4: 8, wrapped
  refuses(tensor("U8", "[4]", "[4,8]"), "start at byte 0");
  refuses(tensor("U8", "[4]", "[0,4]"), "expected 4 bytes, found 8");
  const auto pair = [](std::string_view first, std::string_view second) {
    return framed("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + std::string(first) +
                      "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" +
                      std::string(second) + "}}",
                  9);
  };
  refuses(pair("[0,4]", "[3,7]"), "start at byte 4");
  refuses(pair("[0,4]", "[5,9]"), "start at byte 4");
  refuses(pair("[0,4]", "[0,4]"), "start at byte 4");
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  const Tensor tensor = Tensor::zeros(Dtype::f32, {2});
  Tensor cut = tensor;
  cut.bytes.pop_back();
  EXPECT_THROW(write_tensors({.tensors = {{"a", tensor}, {"a", tensor}}, .metadata = {}}),
               FormatError);
  EXPECT_THROW(write_tensors({.tensors = {{"__metadata__", tensor}}, .metadata = {}}), FormatError);
  EXPECT_THROW(write_tensors({.tensors = {{"\xff", tensor}}, .metadata = {}}), FormatError);
  EXPECT_THROW(write_tensors({.tensors = {{"a", cut}}, .metadata = {}}), FormatError);
  EXPECT_THROW(write_tensors({.tensors = {}, .metadata = {{"k", "\xff"}}}), FormatError);
  EXPECT_THROW(write_tensors({.tensors = {}, .metadata = {{"k", ""}, {"k", ""}}}), FormatError);
}

}  // namespace
}  // namespace lossgate::corpora
