// SPDX-License-Identifier: Apache-2.0
#include "reference/teacher_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/base64.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// Two sequences of 3 and 5 tokens, of which 2 are the prompt: completions of 1 and 3 tokens, two
/// entries each. In binary a third of the first sequence's row is data, the rest is padding.
constexpr std::string_view kJson = R"({"prompt_lengths":[2,2],"sequence_lengths":[3,5],)"
                                   R"("logprobs":[[[-0.5,-1]],[[-0.25,-2],[0,"-inf"],[-1.5,-3]]],)"
                                   R"("logprob_token_ids":[[[4,1]],[[2,3],[7,0],[65536,9]]],)"
                                   R"("actual_logprobs":[[[-1]],[[-0.25],[-4],[-1.5]]],)"
                                   R"("actual_token_ids":[[[1]],[[2],[5],[65536]]]})";
constexpr std::string_view kBinary =
    R"({"prompt_lengths":[2,2],"sequence_lengths":[3,5],"shape":[2,3,2],)"
    R"("completion_lengths":[1,3],)"
    R"("logprobs_b64":"AAAAvwAAgL8AAID/AACA/wAAwH8AAMB/AACAvgAAAMAAAAAAAACA/wAAwL8AAEDA",)"
    R"("token_ids_b64":"BAAAAAEAAAAAAAAAAAAAAP//////////AgAAAAMAAAAHAAAAAAAAAAAAAQAJAAAA",)"
    R"("actual_logprobs_b64":"AACAvwAAgP8AAMB/AACAvgAAgMAAAMC/",)"
    R"("actual_token_ids_b64":"AQAAAAAAAAD/////AgAAAAUAAAAAAAEA"})";

Case case_of(const std::vector<std::string>& messages, std::int64_t sequences, std::int64_t tokens,
             std::int64_t support) {
  std::size_t longest = 1;
  for (const std::string& message : messages) longest = std::max(longest, message.size());
  Case c;
  c.spec = standard_spec(*find_signature("teacher_payload"));
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  c.shape[Axis::support] = support;
  c.shape[Axis::responses] = static_cast<std::int64_t>(messages.size());
  c.shape[Axis::bytes] = static_cast<std::int64_t>(longest);
  Tensor payload = Tensor::zeros(Dtype::u8, c.shape.of({Axis::responses, Axis::bytes}));
  std::int64_t at = 0;
  for (std::string message : messages) {
    message.resize(longest, ' ');
    for (char byte : message) payload.set(at++, static_cast<unsigned char>(byte));
  }
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

Refusal refusal_of(const Case& c) {
  const auto refusal = expected_refusal(*find_loss("teacher_payload"), c);
  EXPECT_TRUE(refusal) << "accepted";
  return refusal.value_or(Refusal{});
}

/// The message with one part replaced by another.
std::string with(std::string_view message, std::string_view part, std::string_view other) {
  std::string text(message);
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

std::string complaint(std::string_view message, std::string_view part, std::string_view other) {
  const Refusal refusal = refusal_of(case_of({with(message, part, other)}, 2, 3, 2));
  EXPECT_EQ(refusal.argument, "payload");
  EXPECT_TRUE(refusal.message.starts_with("response 0 ")) << refusal.message;
  return refusal.message;
}

bool is_same(const TeacherRows& a, const TeacherRows& b) {
  return std::ranges::equal(a, b, [](const auto& row, const auto& other) {
    return std::ranges::equal(row, other, [](const TeacherToken& x, const TeacherToken& y) {
      return x.log_probs == y.log_probs && x.token_ids == y.token_ids &&
             x.actual_log_prob == y.actual_log_prob && x.actual_token_id == y.actual_token_id;
    });
  });
}

TEST(TeacherMessage, IsReadFromEitherForm) {
  for (std::string_view message : {kJson, kBinary}) {
    const auto payload = read_teacher_payload(case_of({std::string(message)}, 2, 3, 2));
    ASSERT_TRUE(std::holds_alternative<TeacherRows>(payload)) << std::get<Refusal>(payload).message;
    const auto& rows = std::get<TeacherRows>(payload);
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_EQ(rows[0].size(), 1u);
    ASSERT_EQ(rows[1].size(), 3u);
    EXPECT_EQ(rows[0][0].log_probs, (std::vector<double>{-0.5, -1.0}));
    EXPECT_EQ(rows[1][1].log_probs, (std::vector<double>{0.0, -HUGE_VAL}));
    EXPECT_EQ(rows[1][2].token_ids, (std::vector<std::int64_t>{65536, 9}));
    EXPECT_EQ(rows[1][1].actual_log_prob, -4.0);
    EXPECT_EQ(rows[1][2].actual_token_id, 65536);
  }
}

TEST(TeacherMessage, MayHavePromptsThatAreLongerThanItself) {
  const std::string prompts = with(kJson, "[2,2]", "[90002,90002]");
  const auto rows = std::get<TeacherRows>(
      read_teacher_payload(case_of({with(prompts, "[3,5]", "[90003,90005]")}, 2, 3, 2)));
  EXPECT_TRUE(is_same(
      rows, std::get<TeacherRows>(read_teacher_payload(case_of({std::string(kJson)}, 2, 3, 2)))));
}

TEST(TeacherMessage, OfSeveralResponsesIsReadInTheirOrder) {
  const std::string json(kJson), binary(kBinary);
  const auto rows = std::get<TeacherRows>(read_teacher_payload(case_of({json, binary}, 4, 3, 2)));
  const auto single = std::get<TeacherRows>(read_teacher_payload(case_of({json}, 2, 3, 2)));
  EXPECT_TRUE(is_same({rows[0], rows[1]}, single));
  EXPECT_TRUE(is_same({rows[2], rows[3]}, single));
}

TEST(TeacherMessage, IsRefusedWhereItIsNone) {
  for (const char* text : {"", " ", "[]", "{", "{}", "null", "\xff\xfe", "{\"shape\":3}",
                           "{\"prompt_lengths\":[],\"sequence_lengths\":[]}"}) {
    const Refusal refusal = refusal_of(case_of({text}, 0, 1, 1));
    EXPECT_EQ(refusal.argument, "payload") << text;
    EXPECT_EQ(refusal.sequence, -1) << "a message has no place";
    EXPECT_EQ(refusal.token, -1);
  }
  EXPECT_EQ(complaint(kJson, R"("logprobs")", R"("logprob")"),
            "response 0 has the unknown key 'logprob'");
  EXPECT_EQ(complaint(kJson, "{", R"({"completion_lengths":[1,3],)"),
            "response 0 has the unknown key 'completion_lengths'")
      << "of the other form";
  EXPECT_EQ(complaint(kBinary, R"("completion_lengths":[1,3],)", ""),
            "response 0 lacks completion_lengths");
}

TEST(TeacherMessage, HasNothingButSpacesBehindIt) {
  using namespace std::string_literals;
  for (const std::string& behind : {"\0"s, "\0 "s, "\0}"s, "}"s, "{}"s}) {
    EXPECT_EQ(complaint(kJson, "65536]]]}", "65536]]]}" + behind), "response 0 is no JSON object");
  }
}

TEST(TeacherMessage, NamesTheSequenceWhoseCompletionHasAnotherLength) {
  for (const auto& [lengths, sequence] : {std::pair("[2,3]", 0), std::pair("[1,2]", 1)}) {
    const std::string message = with(kBinary, R"("completion_lengths":[1,3])",
                                     R"("completion_lengths":)" + std::string(lengths));
    EXPECT_EQ(refusal_of(case_of({message}, 2, 3, 2)).sequence, sequence);
  }
}

TEST(TeacherMessage, NamesTheSequenceWhosePromptIsNotBelowItsLength) {
  for (const char* length : {"2", "1", "0"}) {
    const std::string message = with(kJson, "[3,5]", "[3," + std::string(length) + "]");
    const Refusal refusal = refusal_of(case_of({std::string(kJson), message}, 4, 3, 2));
    EXPECT_EQ(refusal.sequence, 3);
    EXPECT_EQ(refusal.message,
              "response 1 has a prompt of 2 tokens in a sequence of " + std::string(length));
  }
  const Refusal refusal = refusal_of(case_of({with(kBinary, "[2,2]", "[0,2]")}, 2, 3, 2));
  EXPECT_EQ(refusal.sequence, 0);
  EXPECT_EQ(refusal.token, -1) << "a sequence has no token";
  EXPECT_EQ(refusal.message, "response 0 has a sequence without a prompt");
}

TEST(TeacherMessage, NamesTheResponseWithoutAnOptionalArray) {
  const std::string json(kJson);
  const std::size_t optional = json.find(R"(,"actual_logprobs")");
  const std::string bare = json.substr(0, optional) + "}";
  const std::string half = with(json, R"(,"actual_token_ids":[[[1]],[[2],[5],[65536]]])", "");
  EXPECT_FALSE(expected_refusal(*find_loss("teacher_payload"), case_of({bare, bare}, 4, 3, 2)));
  EXPECT_EQ(refusal_of(case_of({json, json, bare}, 6, 3, 2)).message,
            "response 2 and response 0 do not both have actual_logprobs");
  EXPECT_EQ(refusal_of(case_of({bare, std::string(kBinary)}, 4, 3, 2)).message,
            "response 1 and response 0 do not both have actual_logprobs");
  EXPECT_EQ(refusal_of(case_of({half, json}, 4, 3, 2)).message,
            "response 1 and response 0 do not both have actual_token_ids");
}

TEST(TeacherMessage, RefusesNanWhereverItCounts) {
  EXPECT_EQ(complaint(kJson, "-0.25", "null"), "response 0 has a log-prob that is no number");
  EXPECT_EQ(complaint(kJson, "-0.25", "NaN"), "response 0 is no JSON object");
  EXPECT_EQ(complaint(kJson, "-0.25", "1e39"), "response 0 has a log-prob beyond the range of f32");
  EXPECT_EQ(complaint(kJson, R"("-inf")", R"("inf")"),
            "response 0 has a log-prob that is no number");
  const Refusal refusal =
      refusal_of(case_of({with(kBinary, "AACAvgAAAMAAAAAA", "AACAvgAAAMAAAMB/")}, 2, 3, 2));
  EXPECT_EQ(refusal.message, "response 0 has a log-prob that is NaN");
  EXPECT_EQ(refusal.sequence, 1);
  EXPECT_EQ(refusal.token, 1);
  EXPECT_EQ(complaint(kBinary, "AAAAvwAAgL8", "AACAfwAAgL8"),
            "response 0 has a log-prob that is infinity");
}

TEST(TeacherMessage, RefusesListsThatDiffer) {
  EXPECT_EQ(complaint(kJson, "[7,0]", "[7]"),
            "response 0 has a token with more log-probs than ids, or fewer");
  EXPECT_EQ(complaint(kJson, "[7,0]", "[7,0,1]"),
            "response 0 logprob_token_ids has a token with another number of entries");
  EXPECT_EQ(complaint(kJson, "[[1]],", "[[1],[1]],"),
            "response 0 actual_token_ids has 2 entries, not 1");
  EXPECT_EQ(complaint(kJson, "[[1]],", "[[]],"),
            "response 0 actual_token_ids has a token with another number of entries");
  EXPECT_EQ(complaint(kJson, "[[1]],", "[[1,2]],"),
            "response 0 actual_token_ids has a token with another number of entries");
  EXPECT_EQ(complaint(kJson, "[3,5]", "[3,5,4]"),
            "response 0 sequence_lengths has 3 entries, not 2");
}

TEST(TeacherMessage, RefusesCountsThatAreNotTrue) {
  EXPECT_EQ(complaint(kBinary, "[2,3,2]", "[2,3,3]"),
            "response 0 has no entries, or more than were asked for");
  EXPECT_EQ(complaint(kBinary, "[2,3,2]", "[2,3,1]"),
            "response 0 logprobs_b64 is not base64 of the shape's size");
  for (const char* shape : {"[1,3,2]", "[2,2,2]", "[3,2,2]"}) {
    EXPECT_EQ(complaint(kBinary, "[2,3,2]", shape),
              "response 0 has a shape that is not [sequences, longest completion, entries]");
  }
  EXPECT_EQ(complaint(kBinary, "[1,3]", "[1,2]"),
            "response 0 has completion_lengths that are not the lengths");
  EXPECT_EQ(refusal_of(case_of({std::string(kJson)}, 3, 3, 2)).message,
            "has 2 sequences, asked for were 3");
  EXPECT_EQ(refusal_of(case_of({std::string(kJson)}, 1, 3, 2)).message,
            "response 0 has more sequences than were asked for");
  EXPECT_EQ(refusal_of(case_of({std::string(kJson)}, 2, 2, 2)).sequence, 1) << "too few columns";
}

TEST(TeacherMessage, RefusesAbsurdSizesBeforeItAllocatesThem) {
  for (const char* size : {"2147483647", "4611686018427387904", "-1", "1e18", "5.0", "\"5\""}) {
    for (std::string_view message : {kJson, kBinary}) {
      complaint(message, "[3,5]", "[3," + std::string(size) + "]");
    }
    complaint(kBinary, "[2,3,2]", "[2,3," + std::string(size) + "]");
  }
  // Within the rectangle, but more than the message could hold.
  const std::string claim = with(kJson, "[3,5]", "[3,4000002]");
  EXPECT_EQ(refusal_of(case_of({claim}, 2, 4'000'000, 2)).message,
            "response 0 has lengths that its bytes cannot hold");
  for (const auto& [sequences, tokens] : {std::pair<std::int64_t, std::int64_t>{1 << 13, 1 << 12},
                                          {std::int64_t{1} << 62, 1},
                                          {0, std::int64_t{1} << 62}}) {
    EXPECT_EQ(refusal_of(case_of({std::string(kJson)}, sequences, tokens, 1)).message,
              "is for a rectangle of an absurd size");
  }
  EXPECT_NE(refusal_of(case_of({std::string(kJson)}, 2, 3, 0)).message,
            "is for a rectangle of an absurd size");
}

TEST(TeacherMessage, ReadsTheLargestTokenThereIs) {
  const std::string largest = with(kJson, "[1]", "[2147483647]");
  EXPECT_FALSE(expected_refusal(*find_loss("teacher_payload"), case_of({largest}, 2, 3, 2)));
  const std::string beyond = with(kJson, "[1]", "[2147483648]");
  EXPECT_TRUE(expected_refusal(*find_loss("teacher_payload"), case_of({beyond}, 2, 3, 2)));
}

TEST(TeacherMessage, LooksAtNothingBehindACompletion) {
  const std::string other = with(with(kBinary, "AACA/wAAwH8AAMB/", "AACAfwAAwH8BAIB/"),
                                 "AAAAAP//////////", "AAAAgP//////////");
  EXPECT_TRUE(is_same(
      std::get<TeacherRows>(read_teacher_payload(case_of({other}, 2, 3, 2))),
      std::get<TeacherRows>(read_teacher_payload(case_of({std::string(kBinary)}, 2, 3, 2)))));
}

// ---- base64 -------------------------------------------------------------------------------------

std::string decoded(std::string_view text, std::int64_t bytes) {
  const auto read = read_base64(text, bytes);
  return read ? std::string(read->begin(), read->end()) : "refused";
}

TEST(Base64, ReadsTheVectorsOfRfc4648) {
  EXPECT_EQ(decoded("", 0), "");
  EXPECT_EQ(decoded("Zg==", 1), "f");
  EXPECT_EQ(decoded("Zm8=", 2), "fo");
  EXPECT_EQ(decoded("Zm9v", 3), "foo");
  EXPECT_EQ(decoded("Zm9vYg==", 4), "foob");
  EXPECT_EQ(decoded("Zm9vYmE=", 5), "fooba");
  EXPECT_EQ(decoded("Zm9vYmFy", 6), "foobar");
  EXPECT_EQ(decoded("+/8=", 2), "\xfb\xff");
}

TEST(Base64, RefusesWhatHasAnotherSize) {
  for (std::int64_t bytes : {-1, 0, 2, 4, 7}) EXPECT_FALSE(read_base64("Zm9v", bytes)) << bytes;
  EXPECT_FALSE(read_base64("Zm9v", std::int64_t{1} << 62));
  for (std::size_t size = 0; size < 8; ++size) {
    EXPECT_FALSE(read_base64(std::string_view("Zm9vYg==").substr(0, size), 4)) << size;
  }
}

TEST(Base64, RefusesOtherCharacters) {
  for (const char* text : {"Zm-v", "Zm_v", "Zm v", "Zm\nv", "Zm=v", "=m9v", "Zm9\x80"}) {
    EXPECT_FALSE(read_base64(text, 3)) << text;
  }
  EXPECT_FALSE(read_base64("Z===", 1));
  EXPECT_FALSE(read_base64("Zg=A", 1));
  EXPECT_FALSE(read_base64("====", 1));
}

TEST(Base64, RefusesBitsThatStandForNothing) {
  EXPECT_FALSE(read_base64("Zh==", 1));
  EXPECT_FALSE(read_base64("Zm9=", 2));
}

}  // namespace
}  // namespace lossgate::reference
