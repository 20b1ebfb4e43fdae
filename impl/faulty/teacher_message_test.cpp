// SPDX-License-Identifier: Apache-2.0
#include "impl/faulty/teacher_message.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace lossgate::impl {
namespace {

/// One response of two sequences, their completions of 1 and 2 tokens, one entry each.
const std::string kJson =
    R"({"prompt_lengths":[1,3],"sequence_lengths":[2,5],"logprobs":[[[-0.5]],[[-1],["-inf"]]],)"
    R"("logprob_token_ids":[[[4]],[[2],[9]]],"actual_logprobs":[[[-1]],[[-2],[-3]]]})";
const std::string kBinary =
    R"({"prompt_lengths":[1,3],"sequence_lengths":[2,5],"shape":[2,2,1],)"
    R"("completion_lengths":[1,2],"logprobs_b64":"AAAAvwAAwH8AAIC/AACA/w==",)"
    R"("token_ids_b64":"BAAAAP////8CAAAACQAAAA==",)"
    R"("actual_logprobs_b64":"AACAvwAAwH8AAADAAABAwA=="})";
constexpr Expected kExpected = {.sequences = 2, .tokens = 2, .support = 1};

TeacherAnswer decode(const std::string& text, PayloadFault fault = PayloadFault::none) {
  return decode_answer(text, kExpected, fault);
}

/// The message with one part replaced by another.
std::string with(const std::string& message, std::string_view part, std::string_view other) {
  const std::size_t at = message.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return std::string(message).replace(at, part.size(), other);
}

bool accepts(const std::string& text, PayloadFault fault = PayloadFault::none) {
  try {
    decode(text, fault);
    return true;
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.argument, "payload");
    return false;
  }
}

TEST(TeacherAnswer, IsTheSameFromEitherForm) {
  const TeacherAnswer json = decode(kJson), binary = decode(kBinary);
  const Ragged<float> expected = {{{-0.5F}}, {{-1.0F}, {-HUGE_VALF}}};
  EXPECT_EQ(json.log_probs, expected);
  EXPECT_EQ(binary.log_probs, expected);
  EXPECT_EQ(json.token_ids, binary.token_ids);
  EXPECT_EQ(json.actual_log_probs, binary.actual_log_probs);
  EXPECT_EQ(json.actual_token_ids, std::nullopt);
  EXPECT_EQ(binary.actual_token_ids, std::nullopt);
}

TEST(TeacherAnswer, NamesTheSequenceOfABadPrompt) {
  Expected expected = kExpected;
  expected.first = 6;
  std::string whole = with(kJson, "[2,5]", "[2,3]");
  for (const char* row : {R"([[-1],["-inf"]])", "[[2],[9]]", "[[-2],[-3]]"}) {
    whole = with(whole, row, "[]");
  }
  try {
    decode_answer(whole, expected, PayloadFault::none);
    ADD_FAILURE() << "accepted";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.sequence, 7);
  }
  EXPECT_FALSE(accepts(with(with(kJson, "[1,3]", "[0,3]"), "[2,5]", "[1,5]")));
}

TEST(TeacherAnswer, IsRefusedWhereItIsNotWhatItClaimsToBe) {
  for (const char* text : {"", "[]", "{}", "{", "7", "{\"shape\":[0,0,1]}"}) {
    EXPECT_FALSE(accepts(text)) << text;
  }
  for (const auto& [part, other] :
       std::vector<std::pair<const char*, const char*>>{{"[[4]]", "[[]]"},
                                                        {"[[4]]", "[[4,5]]"},
                                                        {"[[4]]", "[[-4]]"},
                                                        {"[[4]]", "[[4.0]]"},
                                                        {"[[4]]", "[4]"},
                                                        {"[[4]]", "[[4],[4]]"},
                                                        {"-0.5", "null"},
                                                        {"-0.5", "1e39"},
                                                        {"-0.5", "\"inf\""},
                                                        {"-0.5", "true"},
                                                        {"[2,5]", "[2,6]"},
                                                        {"[2,5]", "[2,99999999999999999999]"},
                                                        {"[2,5]", "[2]"},
                                                        {"[2,5]", "[2,5,6]"},
                                                        {"logprobs", "log_probs"},
                                                        {"[[-1]]", "[[-1,-1]]"},
                                                        {"[[-1]]", "[[]]"},
                                                        {"[1,3]", "{\"a\":1}"}}) {
    EXPECT_FALSE(accepts(with(kJson, part, other))) << part << " -> " << other;
  }
  for (const auto& [part, other] :
       std::vector<std::pair<const char*, const char*>>{{"[2,2,1]", "[2,2,2]"},
                                                        {"[2,2,1]", "[2,1,1]"},
                                                        {"[2,2,1]", "[2,2,0]"},
                                                        {"[2,2,1]", "[2,2]"},
                                                        {"[2,2,1]", "[2,2,4611686018427387904]"},
                                                        {"[1,2]", "[2,2]"},
                                                        {"AIC/AACA/w==", "AIC/AACA/w="},
                                                        {"/w==", "/x=="},
                                                        {"AACA/w==", ""},
                                                        {"AAAAvw", "AADAfw"},
                                                        {"AAAAvw", "AACAfw"},
                                                        {"BAAAAP", "BAAAgP"},
                                                        {"BAAAAP", "BAA-AP"}}) {
    EXPECT_FALSE(accepts(with(kBinary, part, other))) << part << " -> " << other;
  }
}

TEST(TeacherAnswer, ThatIsFaultyIsAcceptedByTheFaultThatOverlooksIt) {
  using enum PayloadFault;
  const std::string no_completion = with(with(kJson, "[2,5]", "[1,5]"), "[[[-0.5]],", "[[],");
  EXPECT_TRUE(
      accepts(with(with(no_completion, "[[[4]],", "[[],"), "[[[-1]],", "[[],"), prompt_unchecked));
  EXPECT_TRUE(accepts(with(kJson, "[[4]]", "[[]]"), lengths_unchecked));
  EXPECT_TRUE(accepts(with(kBinary, "AACA/w==", ""), truncated_base64_accepted));
  for (const std::string& nan : {with(kJson, "-0.5", "null"), with(kBinary, "AAAAvw", "AADAfw")}) {
    EXPECT_EQ(decode(nan, nan_becomes_minus_inf).log_probs[0][0][0], -HUGE_VALF);
  }
  EXPECT_EQ(decode(kJson, json_lacks_actual).actual_log_probs, std::nullopt);
  EXPECT_TRUE(decode(kBinary, json_lacks_actual).actual_log_probs);
  const std::string quiet =
      with(with(kBinary, "AAAAvwAAwH8", "AAAAvwAAwD8"), "AACAvwAAwH8", "AACAvwAAwD8");
  EXPECT_EQ(decode(with(quiet, "////", "8AAA"), message_padding_read).log_probs[0].size(), 2u);
}

std::string decoded(std::string_view text, std::size_t bytes, bool partial = false) {
  const auto data = decode_base64(text, bytes, partial);
  return data ? std::string(data->begin(), data->end()) : "refused";
}

TEST(Base64, IsDecodedWhereItHasTheSizeThatWasAskedFor) {
  EXPECT_EQ(decoded("", 0), "");
  EXPECT_EQ(decoded("Zg==", 1), "f");
  EXPECT_EQ(decoded("Zm8=", 2), "fo");
  EXPECT_EQ(decoded("Zm9vYmFy", 6), "foobar");
  EXPECT_EQ(decoded("+/8=", 2), "\xfb\xff");
  for (const char* text : {"", "Zg", "Zg=", "Zg=A", "Zh==", "====", "Z===", "Zm9v", "Zg==Zg=="}) {
    EXPECT_EQ(decoded(text, 1), "refused") << text;
  }
  for (const char* text : {"Zm-v", "Zm v", "Zm=v", "Zm9\x80"}) {
    EXPECT_EQ(decoded(text, 3), "refused") << text;
  }
  EXPECT_EQ(decoded("Zm9v", std::size_t{1} << 62), "refused");
  EXPECT_EQ(decoded("Zm9vY", 6, true), "foo") << "what is there";
}

}  // namespace
}  // namespace lossgate::impl
