// SPDX-License-Identifier: Apache-2.0
#include "properties/spoilt_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "properties/transforms.h"
#include "reference/reference.h"

namespace lossgate::properties {
namespace {

const reference::Loss& payload_loss() { return *reference::find_loss("teacher_payload"); }

/// A case of these messages.
Case case_of(const std::vector<std::string>& texts) {
  Case c;
  c.spec = standard_spec(payload_loss().signature);
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  c.shape[Axis::sequences] = c.shape[Axis::tokens] = c.shape[Axis::responses] = 2;
  c.shape[Axis::support] = 1;
  c.shape[Axis::bytes] = static_cast<std::int64_t>(width);
  Tensor payload =
      Tensor::zeros(Dtype::u8, {static_cast<std::int64_t>(texts.size()), c.shape[Axis::bytes]});
  for (std::size_t i = 0; i < texts.size() * width; ++i) {
    const std::string& text = texts[i / width];
    payload.bytes[i] = static_cast<std::byte>(i % width < text.size() ? text[i % width] : ' ');
  }
  c.batch.fields.emplace_back("payload", std::move(payload));
  return c;
}

/// Two messages of a sequence with two tokens each, one in either form.
Case two_messages() {
  return case_of(
      {R"({"prompt_lengths":[3],"sequence_lengths":[5],"logprobs":[[[-0.5],[-1.5]]],)"
       R"("logprob_token_ids":[[[7],[8]]],"actual_token_ids":[[[7],[9]]]})",
       R"({"prompt_lengths":[1],"sequence_lengths":[3],"shape":[1,2,1],"completion_lengths":[2],)"
       R"("logprobs_b64":"AAAAvwAAwL8=","token_ids_b64":"BwAAAAgAAAA=",)"
       R"("actual_token_ids_b64":"BwAAAAkAAAA="})"});
}

/// What the message says.
nlohmann::json message(const Case& c, std::size_t i) {
  const Tensor& payload = c.batch.at("payload");
  const auto width = static_cast<std::size_t>(payload.extents.back());
  const auto* text = reinterpret_cast<const char*>(payload.bytes.data()) + i * width;
  return nlohmann::json::parse(text, text + width);
}

struct Way {
  bool (*spoil)(const LossSignature&, Case&, std::uint64_t);
  const char* complaint;  ///< what the reference says of it
};

constexpr Way kWays[] = {{drop_array, "both have"},
                         {drop_completion, "prompt"},
                         {put_nan, "log-prob"},
                         {shorten_list, "ids"},
                         {cut_text, "base64"}};

TEST(SpoiltMessages, AreRefusedForTheOneThingThatWasSpoilt) {
  ASSERT_FALSE(reference::expected_refusal(payload_loss(), two_messages()));
  for (const Way& way : kWays) {
    for (const std::uint64_t pick : {0u, 1u, 257u, 65793u}) {
      Case c = two_messages();
      ASSERT_TRUE(way.spoil(payload_loss().signature, c, pick)) << way.complaint;
      const auto refusal = reference::expected_refusal(payload_loss(), c);
      ASSERT_TRUE(refusal) << way.complaint;
      EXPECT_EQ(refusal->argument, "payload");
      EXPECT_NE(refusal->message.find(way.complaint), std::string::npos) << refusal->message;
    }
  }
}

TEST(SpoiltMessages, AreNoneWhereThereIsNothingToSpoil) {
  Case c = two_messages();
  c.shape[Axis::responses] = 1;
  EXPECT_FALSE(drop_array(payload_loss().signature, c, 0)) << "one message agrees with itself";
  Case noise = two_messages();
  std::ranges::fill(noise.batch.fields.front().second.bytes, std::byte{'?'});
  for (const Way& way : kWays) {
    EXPECT_FALSE(way.spoil(payload_loss().signature, noise, 0)) << way.complaint;
    LossSignature other = payload_loss().signature;
    other.fields.clear();
    EXPECT_FALSE(way.spoil(other, noise, 0)) << way.complaint;
  }
}

TEST(SpoiltMessages, HaveTheOneListOfEntriesSpoiltThatThereIsWhateverIsPicked) {
  const std::pair<const char*, const char*> all[] = {
      {R"({"logprobs":[[[-0.5]],[],[]]})", "/logprobs/0/0/0"},
      {R"({"logprobs":[[],[[-0.5]],[]]})", "/logprobs/1/0/0"},
      {R"({"logprobs":[[],[],[[-0.5]]]})", "/logprobs/2/0/0"},
      {R"({"logprobs":[[[],[],[-0.5]]]})", "/logprobs/0/2/0"},
  };
  for (const auto& [text, entry] : all) {
    for (const std::uint64_t pick : {0u, 1u, 2u, 3u, 256u, 512u, 768u}) {
      Case c = case_of({text});
      ASSERT_TRUE(put_nan(payload_loss().signature, c, pick)) << text << " " << pick;
      EXPECT_TRUE(message(c, 0)[nlohmann::json::json_pointer(entry)].is_null()) << text;
    }
  }
}

TEST(SpoiltMessages, CountNoTokenOfACompletionThatWasDropped) {
  Case c = two_messages();
  ASSERT_TRUE(drop_completion(payload_loss().signature, c, 1));
  EXPECT_EQ(message(c, 1)["sequence_lengths"][0], 1) << "as long as its prompt";
  EXPECT_EQ(message(c, 1)["completion_lengths"][0], 0);
}

TEST(SpoiltMessages, HaveOneTextWithoutItsLastGroup) {
  for (const std::uint64_t pick : {1u, 257u, 513u}) {
    Case c = two_messages();
    ASSERT_TRUE(cut_text(payload_loss().signature, c, pick));
    int cut = 0;
    const auto before = message(two_messages(), 1), after = message(c, 1);
    for (const char* key : {"logprobs_b64", "token_ids_b64", "actual_token_ids_b64"}) {
      const std::string whole = before[key];
      if (after[key] == whole) continue;
      EXPECT_EQ(after[key], whole.substr(0, whole.size() - 4)) << key;
      ++cut;
    }
    EXPECT_EQ(cut, 1);
  }
}

TEST(SpoiltMessages, HaveATextCutThatIsNotEmpty) {
  Case some = case_of({R"({"logprobs_b64":"","token_ids_b64":"BwAAAAgAAAA="})"});
  Case none = case_of({R"({"logprobs_b64":"","token_ids_b64":""})"});
  for (const std::uint64_t pick : {0u, 256u}) {
    Case c = some;
    ASSERT_TRUE(cut_text(payload_loss().signature, c, pick));
    EXPECT_EQ(message(c, 0)["token_ids_b64"], "BwAAAAgA");
    EXPECT_FALSE(cut_text(payload_loss().signature, none, pick));
  }
}

}  // namespace
}  // namespace lossgate::properties
